// SPDX-License-Identifier: MIT
//
// The gate: checks that source, transcripts and text are in step.
//
//   gate                    check the repository in the current folder
//   gate --weave            weave its READMEs
//   gate --snippets FOLDER  write its snippets to FOLDER/LESSON/NAME.cu
//
// Exit: 0 no fault; 1 faults, one a line on stdout; 2 it could not run.

#include <cstdlib>
#include <iostream>

#include "weave.h"

static int run(const std::vector<std::string> &arguments) {
    gate::Repository repository = gate::readRepository(".");
    gate::Faults faults;
    if (arguments.empty()) {
        faults = gate::checkAll(&repository);
    } else if (arguments[0] == "--weave" && arguments.size() == 1) {
        faults = gate::weaveAll(&repository);
    } else if (arguments[0] == "--snippets" && arguments.size() == 2) {
        gate::rule7(repository, &faults);
        if (faults.empty()) gate::writeSnippets(repository, arguments[1]);
    } else {
        throw gate::CouldNotRun("usage: gate [--weave | --snippets FOLDER]");
    }
    for (const gate::Fault &fault : faults)
        std::cout << gate::faultLine(fault) << "\n";
    if (faults.empty() && arguments.empty())
        std::cout << "gate: no fault in "
                  << std::to_string(repository.lessons.size()) << " lessons, "
                  << std::to_string(repository.transcripts.size())
                  << " transcripts, "
                  << std::to_string(repository.readmes.size())
                  << " READMEs and " << std::to_string(repository.claims.size())
                  << " claims\n";
    if (!std::cout.flush())
        throw gate::CouldNotRun("the faults cannot be written to stdout");
    return faults.empty() ? 0 : 1;
}

int main(int argc, char **argv) {
    setenv("LC_ALL", "C", 1);
    try {
        return run(std::vector<std::string>(argv + 1, argv + argc));
    } catch (const std::exception &error) {
        std::cerr << "gate: " << error.what() << "\n";
        return 2;
    }
}
