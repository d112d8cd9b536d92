package image

import (
	"debug/elf"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// hostPlatform is the platform of containers on this machine.
func hostPlatform() string { return "linux/" + runtime.GOARCH }

// parsePlatform reads "os/arch" or "os/arch/variant".
func parsePlatform(s string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(s)
	if err != nil || p.OS == "" || p.Architecture == "" || strings.ContainsAny(s, ": ") {
		return v1.Platform{}, problem.Invalidf("write it as linux/amd64", "platform %q is not of the form os/architecture", s)
	}
	return *p, nil
}

// sortedPlatforms checks the platforms and drops repetitions.
func sortedPlatforms(platforms []string) ([]string, error) {
	if len(platforms) == 0 {
		return nil, problem.Invalidf("name one, such as linux/amd64", "no platform to build an image for")
	}
	for _, p := range platforms {
		if _, err := parsePlatform(p); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(platforms)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

// elfPlatform is the platform a Linux program was made for, "" if we know none.
func elfPlatform(f *elf.File) string {
	little := f.Data == elf.ELFDATA2LSB
	switch {
	case f.Machine == elf.EM_X86_64:
		return "linux/amd64"
	case f.Machine == elf.EM_386:
		return "linux/386"
	case f.Machine == elf.EM_AARCH64 && little:
		return "linux/arm64"
	case f.Machine == elf.EM_ARM && little:
		return "linux/arm"
	case f.Machine == elf.EM_PPC64 && little:
		return "linux/ppc64le"
	case f.Machine == elf.EM_S390:
		return "linux/s390x"
	case f.Machine == elf.EM_RISCV:
		return "linux/riscv64"
	}
	return ""
}

// programPlatform tells what a program was made for. Scripts and data, which fit
// every platform, are not ok.
func programPlatform(file string) (platform string, machine elf.Machine, ok bool) {
	program, err := elf.Open(file)
	if err != nil {
		return "", elf.EM_NONE, false
	}
	defer program.Close()
	return elfPlatform(program), program.Machine, true
}

// runsOn reports whether a program for the platform program runs where platform
// is asked for; a variant such as linux/arm/v7 is not looked at.
func runsOn(program, platform string) bool {
	return platform == program || strings.HasPrefix(platform, program+"/")
}
