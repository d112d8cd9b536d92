package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// extractTimeout bounds the search for a binary in an image: deploy can do without.
const extractTimeout = time.Minute

// FindScheduler finds the kube-scheduler in an image: in the build cache, this machine's
// containerd, or the registry. It is extracted into dir if it has to be. command lists the programs
// that the container's command names: wrappers, then the scheduler. The error is
// configcheck.ErrNoBinary if it is unavailable; the result then has only the image's label.
func FindScheduler(
	ctx context.Context, cache, reference string, command []string, dir string,
) (configcheck.Binary, error) {
	binary, err := findScheduler(ctx, cache, reference, command, dir)
	if !errors.Is(err, configcheck.ErrNoBinary) || ctx.Err() != nil {
		return binary, err
	}
	limited, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	binary.Label, _ = image.ReleaseLabel(limited, reference, authn.DefaultKeychain) // it may have none
	return binary, err
}

func findScheduler(
	ctx context.Context, cache, reference string, command []string, dir string,
) (configcheck.Binary, error) {
	var none configcheck.Binary
	if runtime.GOOS != "linux" {
		return none, fmt.Errorf("%w: images contain Linux programs, and this machine runs %s", configcheck.ErrNoBinary,
			runtime.GOOS)
	}
	known, err := image.CanonicalName(reference)
	if err != nil {
		return none, err
	}
	if result, found, err := build.FindByImage(cache, known); err == nil && found && startsBuilt(command) {
		if binary, ok := result.Binary(build.KubeScheduler, build.Host()); ok {
			return configcheck.Binary{Path: binary.Path, Origin: "the build cache"}, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, extractTimeout)
	defer cancel()
	var failed []string
	for _, source := range sources(reference) {
		path := filepath.Join(dir, build.KubeScheduler)
		program, err := image.ExtractProgram(ctx, source, command, "", path)
		if err == nil {
			return configcheck.Binary{Path: path, Origin: "image " + reference, Missing: program.Missing,
				Label: program.Release}, nil
		}
		if ctx.Err() != nil {
			return none, fmt.Errorf("%w: read %s: %w", configcheck.ErrNoBinary, reference, ctx.Err())
		}
		failed = append(failed, err.Error())
	}
	return none, fmt.Errorf("%w: %s", configcheck.ErrNoBinary, strings.Join(failed, "; "))
}

// startsBuilt reports whether a command starts the kube-scheduler in an image that pmk-sched built.
func startsBuilt(command []string) bool {
	return len(command) == 0 ||
		len(command) == 1 && (command[0] == image.SchedulerPath || command[0] == filepath.Base(image.SchedulerPath))
}

// sources are the places where an image can be read, the nearest first.
func sources(reference string) []image.Source {
	list := []image.Source{{Reference: reference, Keychain: authn.DefaultKeychain}}
	if _, err := os.Stat(image.DefaultContainerdSocket); err == nil {
		list = append([]image.Source{{Reference: reference, Containerd: image.DefaultContainerdSocket}}, list...)
	}
	return list
}

// writeBinaries copies the program out of the cache, for each platform, and returns the files.
func writeBinaries(ctx context.Context, file string, built *build.Result) ([]string, error) {
	written := []string{}
	for _, b := range built.Binaries {
		to := file
		if len(built.Binaries) > 1 {
			to = fmt.Sprintf("%s-%s-%s", file, b.Platform.OS, b.Platform.Arch)
		}
		if err := copyProgram(ctx, b.Path, to); err != nil {
			return nil, fmt.Errorf("write --binary: %w", err)
		}
		written = append(written, to)
	}
	return written, nil
}

// copyProgram copies an executable file atomically.
func copyProgram(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return writeFile(ctx, to, 0o755, in)
}

func writeFile(ctx context.Context, to string, mode os.FileMode, content io.Reader) error {
	return safeio.WriteFile(ctx, to, mode, func(f *os.File) error {
		_, err := io.Copy(f, content)
		return err
	})
}
