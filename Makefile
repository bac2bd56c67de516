# SPDX-License-Identifier: MIT
#
# make help says what there is to make. Everything goes into build/.

# The lessons, without .cu. This is the only list of them.
LESSONS := atomics/atomics atomics/contention atomics/sum_ladder \
	barrier_pipeline/barrier_pipeline barrier_pipeline/bulk_pipeline

NVCC ?= nvcc
NVCCFLAGS ?= -std=c++17 -O3
CXX := $(if $(filter default,$(origin CXX)),g++,$(CXX))
CXXFLAGS ?= -std=c++17 -O2 -Wall -Wextra
export NVCC CXX
ifdef NVCC_CCBIN
export NVCC_CCBIN
endif

NAMES := $(notdir $(LESSONS))
SOURCES := $(LESSONS:=.cu)
source = $(filter %/$1.cu,$(SOURCES))

# Programs that include a lesson and run its best kernel beside the libraries'.
PEERS := $(basename $(wildcard research/peers/*.cu))
PEER_NAMES := $(notdir $(PEERS))

# What a lesson is built for: ARCH if given; else the GPU of this machine;
# else, or where that is too old, the oldest that the lesson's header names.
gpu := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
	2>/dev/null | sed -n '1s/[^0-9]//gp')
minimum = $(shell sed -n \
	's|^// Needs: compute capability \([0-9]*\)\.\([0-9]\).*|\1\2|p' $1)
arch = $(or $(ARCH),sm_$(shell printf '%s\n' $(call minimum,$1) $(gpu) | \
	sort -n | tail -n 1))

.PHONY: all run peers run-cpu cpu-builds check gate docs snippets help clean \
	format evidence evidence-peers evidence-check-gpu \
	check-gpu repeat figures FORCE
.PHONY: $(NAMES) $(foreach p,run run-cpu ptx sass evidence, $(NAMES:%=$p-%))
.DELETE_ON_ERROR:

all: $(NAMES) ## build every lesson
$(NAMES): %: build/% ## LESSON: build one lesson
run: $(NAMES) ## build and run every lesson on this machine's GPU
	@research/run.sh $(NAMES)
$(NAMES:%=run-%): run-%: build/% ## run-LESSON: build and run one lesson
	@research/run.sh $*
peers: $(PEER_NAMES:%=build/%) ## run the best kernels beside CUB and thrust
	@research/run.sh $(PEER_NAMES)

need_nvcc = @command -v "$(NVCC)" >/dev/null || { echo "No CUDA compiler\
 '$(NVCC)': install the CUDA Toolkit and put nvcc on PATH, or name it:\
 make NVCC=..." >&2; exit 1; }
need_cxx = @command -v "$(firstword $(CXX))" >/dev/null || { echo "No C++\
 compiler '$(CXX)': install g++, or name it: make CXX=..." >&2; exit 1; }
# nvcc leaves the host's part of a lesson to this.
ccbin = $(or $(NVCC_CCBIN),g++)
need_ccbin = $(if $(findstring -ccbin,$(NVCCFLAGS)\
 $(NVCC_PREPEND_FLAGS) $(NVCC_APPEND_FLAGS)),,@[ -d "$(ccbin)" ] || \
	command -v "$(ccbin)" >/dev/null || { echo "No host compiler '$(ccbin)' for nvcc: install g++, or\
 name it: make NVCC_CCBIN=..." >&2; exit 1; })
need_gtest = @echo '\#include <gtest/gtest.h>' | \
	$(CXX) -E -x c++ - >/dev/null 2>&1 || { echo "No GoogleTest for\
 $(CXX): install libgtest-dev." >&2; exit 1; }

define lesson_rules
build/$(notdir $1): $1.cu build/$(notdir $1).flags
	$$(need_nvcc)
	$$(need_ccbin)
	"$(NVCC)" $(NVCCFLAGS) -arch=$(call arch,$1.cu) -o $$@ $1.cu
build/$(notdir $1).ptx: $1.cu build/$(notdir $1).flags
	$$(need_nvcc)
	$$(need_ccbin)
	"$(NVCC)" $(NVCCFLAGS) -arch=$(call arch,$1.cu) -ptx -o $$@ $1.cu
	@[ -s $$@ ] || { echo "Cannot write $$@: is the disk full?" >&2; exit 1; }
# Rewritten, and so newer, only when the command has changed.
build/$(notdir $1).flags: FORCE | build
	@echo '$(NVCC) $(NVCCFLAGS) $(NVCC_CCBIN) $(call arch,$1.cu)' | \
	cmp -s - $$@ || \
	echo '$(NVCC) $(NVCCFLAGS) $(NVCC_CCBIN) $(call arch,$1.cu)' 2>/dev/null >$$@ || \
	{ echo 'Cannot write $$@: is the disk full, or the folder read-only?' >&2; exit 1; }
endef
$(foreach l,$(LESSONS),$(eval $(call lesson_rules,$l)))
$(foreach p,$(PEERS),$(eval $(call lesson_rules,$p)))
$(PEER_NAMES:%=build/%): $(SOURCES)
build:
	@mkdir -p build

$(NAMES:%=ptx-%): ptx-%: build/%.ptx ## ptx-LESSON: build/LESSON.ptx
$(NAMES:%=sass-%): sass-%: build/% ## sass-LESSON: build/LESSON.sass
	@command -v cuobjdump >/dev/null || { echo "No cuobjdump: install it (it\
 is part of the CUDA Toolkit) or put it on PATH." >&2; exit 1; }
	cuobjdump -sass build/$* >build/$*.sass || { rm -f build/$*.sass; exit 1; }

evidence: ## record every lesson's transcript on this machine's GPU
	for source in $(SOURCES); do evidence/capture.sh $$source || exit 1; done
$(NAMES:%=evidence-%): evidence-%: ## evidence-LESSON: record one lesson's transcript
	evidence/capture.sh $(call source,$*)
KNOBBED := $(sort $(notdir $(shell \
	grep -o "^[a-z_]*/[a-z_]*" research/knobs.txt)))
.PHONY: $(KNOBBED:%=knobs-%)
$(KNOBBED:%=knobs-%): ## knobs-LESSON: record one lesson at every value of its knobs
	evidence/capture.sh $@
build/check_claims: research/claims/check_claims.cc research/claims/code.h \
	research/gate/read.cc research/gate/read.h research/tests/shell.h | build
	$(need_cxx)
	$(CXX) $(CXXFLAGS) -o $@ $(filter %.cc,$^) -pthread
check-gpu: build/check_claims ## everything that only a GPU can test
	@research/check_gpu.sh $(SOURCES)
repeat: $(NAMES) ## run every lesson five times: which figures spread more than they say
	@research/repeat.sh $(NAMES)
evidence-check-gpu: build/check_claims ## record what check-gpu finds
	evidence/capture.sh check-gpu $(SOURCES)
evidence-peers: ## record what peers measures
	evidence/capture.sh peers

figures: ## draw evidence/figures from the transcripts
	@research/figures/draw.sh

# The lessons on the CPU: right or wrong, never fast or slow.
$(NAMES:%=build/cpu/%): build/cpu/%: FORCE
	@mkdir -p $(@D)
	@research/cpu_runner/build.sh plain $(call source,$*) $@
run-cpu: $(NAMES:%=build/cpu/%) ## run every lesson's kernels on the CPU: answers, no times
	@research/run.sh $(NAMES:%=cpu/%)
$(NAMES:%=run-cpu-%): run-cpu-%: build/cpu/% ## run-cpu-LESSON: run one lesson's kernels on the CPU
	@research/run.sh cpu/$*
# What all programs for the CPU share; once, before tests build many at a time.
cpu-builds:
	$(need_nvcc)
	$(need_cxx)
	@for build in plain asan tsan; do \
	research/cpu_runner/build.sh $$build || exit 1; done
# A lesson's own functions; the test includes the lesson.
$(NAMES:%=build/tests/%_test): build/tests/%_test: cpu-builds FORCE
	@mkdir -p $(@D)
	$(need_gtest)
	@REDUCE=no TEST=research/tests/$*_test.cc research/cpu_runner/build.sh \
	asan $(call source,$*) $@

# clang-format's output differs from one major version to the next.
CLANG_FORMAT ?= $(shell command -v clang-format-14 || echo clang-format)
FORMATTED = $(SOURCES) $(PEERS:=.cu) $(wildcard research/*/*.cc research/*/*.h)
format: ## lay out every source with clang-format 14
	@"$(CLANG_FORMAT)" --version 2>/dev/null | grep -q 'version 14\.' || { echo "No\
 clang-format 14: install clang-format-14, or name it:\
 make CLANG_FORMAT=..." >&2; exit 1; }
	"$(CLANG_FORMAT)" -i $(FORMATTED)

# The gate: what is published is what the sources and the transcripts bear out.
GATE := $(wildcard research/gate/*.cc)
GATE_PARTS := $(filter-out %/main.cc,$(GATE))
GATE_HEADERS := $(wildcard research/gate/*.h)
build/gate: $(GATE) $(GATE_HEADERS) | build
	$(need_cxx)
	$(CXX) $(CXXFLAGS) -o $@ $(GATE)
gate: build/gate ## the gate alone: sources, transcripts and text in step
	@build/gate
docs: build/gate ## weave the READMEs from sources and transcripts
	@build/gate --weave
snippets: build/gate ## write build/snippets/LESSON/NAME.cu
	@build/gate --snippets build/snippets
build/tests/check_gpu_test: build/check_claims
build/tests/claims_test: research/gate/read.cc $(GATE_HEADERS) \
	research/claims/code.h
build/tests/claims_test: PARTS = research/gate/read.cc
build/tests/gate_test: $(GATE_PARTS) $(GATE_HEADERS) build/gate
build/tests/gate_test: PARTS = -g -fsanitize=address,undefined \
	-fno-sanitize-recover=all $(GATE_PARTS)

# Tests: GoogleTest programs that need no GPU; :N runs one in N parts. PARTS are
# further sources.
TESTS := mutants_test:6 lessons_on_cpu_test:9 cpu_runner_test builds_test:2 \
	capture_test check_gpu_test:3 check_test claims_test figures_test gate_test \
	makefile_test $(NAMES:%=%_test)
test_names := $(foreach t,$(TESTS),$(firstword $(subst :, ,$t)))
export CLANG_FORMAT LESSONS
build/tests/%: research/tests/%.cc $(wildcard research/tests/*.h) | build
	@mkdir -p $(@D)
	$(need_cxx)
	$(need_gtest)
	$(CXX) $(CXXFLAGS) -O0 -o $@ $< $(PARTS) -lgtest -lgtest_main -pthread
check: cpu-builds $(test_names:%=build/tests/%) ## every test that needs no GPU
	@research/check.sh $(TESTS:%=build/tests/%)

clean: ## remove build/
	rm -rf build
help: ## this text
	@sed -n 's/^\([a-z$$][^:]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
	sed 's/^$$[^\t]*\t\([^:]*\): /\1\t/' | sort | expand -t 20
	@echo 'LESSON is one of: $(NAMES)'
	@echo 'Variables, as in make ARCH=sm_90: ARCH, NVCC, NVCCFLAGS, NVCC_CCBIN (the'
	@echo 'host compiler of nvcc), CXX, CXXFLAGS, CLANG_FORMAT'
