package pack

import (
	"context"
	"debug/elf"
	"fmt"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// packSelf packs the executable of pmk-sched, r.Self, and delivers the image.
func (r Request) packSelf(ctx context.Context, s *session.Session) (*Result, error) {
	if err := CheckStatic(r.Self); err != nil {
		return nil, err
	}
	result := &Result{
		Reference: r.Tag, Release: r.Version, Go: runtime.Version(), Source: projectURL,
		Platforms: []string{build.Host().String()}, Plugins: []plugins.Info{}, Written: []string{}, Binaries: []Binary{},
	}
	labels := image.Description{Title: pmkSched, Version: r.Version, URL: projectURL, Origin: projectURL}.Labels()
	files := map[string][]image.File{result.Platforms[0]: append([]image.File{{Path: image.SelfPath, Source: r.Self}}, r.Files...)}
	return result, r.deliver(ctx, s, nil, result, image.Options{
		Base: r.Base, Platforms: result.Platforms, Files: files, Entrypoint: []string{image.SelfPath},
		Labels: labels, Annotations: labels, Keychain: authn.DefaultKeychain,
	})
}

// pmkSched is the name of the program.
const pmkSched = "pmk-sched"

// CheckStatic refuses a program that needs libraries, which an image may not have.
func CheckStatic(file string) error {
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("pack %s: it is not a Linux program: %w", file, err)
	}
	defer program.Close()
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return problem.Invalidf("build pmk-sched with CGO_ENABLED=0", "pack %s: it is dynamically linked, and the image has no libraries", file)
	}
	return nil
}
