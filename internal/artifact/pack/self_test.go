package pack

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

func packSelf(t *testing.T, program string) (*Result, string, error) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "self.tar")
	quiet := func(string) {}
	result, err := Run(t.Context(), Request{
		Self: program, Version: "v1.2.3", Tag: "localhost/pmk-sched:v1.2.3", Base: image.Base{Empty: true},
		Destinations: image.Destinations{Archives: []string{archive}},
	}, &session.Session{Warn: quiet, Note: quiet, OnStep: func(string) func(error) { return func(error) {} }})
	return result, archive, err
}

func TestAnImageOfPmkSchedItselfHasItsExecutable(t *testing.T) {
	const static = "/bin/busybox"
	result, archive, err := packSelf(t, static)
	if err != nil {
		t.Fatal(err)
	}
	if result.Release != "v1.2.3" || !slices.Equal(result.Platforms, []string{build.Host().String()}) ||
		!slices.Equal(result.Written, []string{archive}) {
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
	// The head of a program with an interpreter.
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phoff: 64,
		Phentsize: 56, Phnum: 1,
	}
	var text bytes.Buffer
	for _, part := range []any{header, elf.Prog64{Type: uint32(elf.PT_INTERP)}} {
		if err := binary.Write(&text, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	dynamic := filepath.Join(t.TempDir(), "dynamic")
	if err := os.WriteFile(dynamic, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, archive, err := packSelf(t, dynamic)
	if err == nil || !problem.IsInvalid(err) || !strings.Contains(err.Error(), "dynamically linked") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(archive); err == nil {
		t.Error("an image was written")
	}
}
