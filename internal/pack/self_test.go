package pack

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

func packSelf(t *testing.T, program string) (*Result, string, error) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "self.tar")
	quiet := func(string) {}
	result, err := Run(t.Context(), Request{
		Self: program, Version: "v1.2.3", Tag: "localhost/pmk-sched:v1.2.3", Base: image.Base{Empty: true},
		Destinations: image.Destinations{Archives: []string{archive}},
	}, Env{Warn: quiet, Note: quiet, OnStep: func(string) func(error) { return func(error) {} }})
	return result, archive, err
}

func TestAnImageOfPmkSchedItselfHasItsExecutable(t *testing.T) {
	const static = "/bin/busybox"
	result, archive, err := packSelf(t, static)
	if err != nil {
		t.Fatal(err)
	}
	if result.Release != "v1.2.3" || !slices.Equal(result.Platforms, []string{build.Host().String()}) || !slices.Equal(result.Written, []string{archive}) {
		t.Errorf("result %+v", result)
	}
	to := filepath.Join(t.TempDir(), "program")
	if err := image.ExtractFile(t.Context(), image.Source{Archive: archive}, image.SelfPath, "", to); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(static)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the image has another program: %d bytes, want %d, %v", len(got), len(want), err)
	}
}

func TestAProgramThatNeedsLibrariesIsNotPacked(t *testing.T) {
	const dynamic = "/bin/sh"
	program, err := elf.Open(dynamic)
	if err != nil {
		t.Fatal(err)
	}
	interpreted := slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if err := program.Close(); err != nil || !interpreted {
		t.Skipf("%s of this machine is static (%v)", dynamic, err)
	}
	_, archive, err := packSelf(t, dynamic)
	if err == nil || !problem.IsInvalid(err) || !strings.Contains(err.Error(), "dynamically linked") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(archive); err == nil {
		t.Error("an image was written")
	}
}
