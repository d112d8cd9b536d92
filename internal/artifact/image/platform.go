package image

import (
	"debug/elf"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func hostPlatform() string { return "linux/" + runtime.GOARCH }

// parsePlatform parses "os/arch" or "os/arch/variant".
func parsePlatform(s string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(s)
	if err != nil || p.OS == "" || p.Architecture == "" || strings.ContainsAny(s, ": ") {
		return v1.Platform{}, problem.Invalidf("use the form linux/amd64",
			"invalid platform %q: must be os/architecture", s)
	}
	return *p, nil
}

// sortedPlatforms validates the platforms and removes duplicates.
func sortedPlatforms(platforms []string) ([]string, error) {
	if len(platforms) == 0 {
		return nil, problem.Invalidf("specify one, such as linux/amd64", "a platform is required")
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

// elfPlatform returns a Linux program's platform, or "" if it is unknown.
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

// programPlatform returns a program's platform. ok is false for scripts and data, which fit every
// platform.
func programPlatform(file string) (platform string, machine elf.Machine, ok bool) {
	program, err := elf.Open(file)
	if err != nil {
		return "", elf.EM_NONE, false
	}
	defer program.Close()
	return elfPlatform(program), program.Machine, true
}

// runsOn reports whether a program for the platform program runs on platform. It ignores a variant
// such as linux/arm/v7.
func runsOn(program, platform string) bool {
	return platform == program || strings.HasPrefix(platform, program+"/")
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown platform"
	}
	return s
}
