package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

// defaultPath is the PATH of a container whose image sets none (containerd, oci/spec.go,
// defaultUnixEnv).
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// schedulerPlaces are the paths of kube-scheduler in images. Upstream's images have it at the
// first; their entrypoint is /go-runner.
var schedulerPlaces = []string{SchedulerPath, "/usr/bin/kube-scheduler", "/bin/kube-scheduler", "/kube-scheduler"}

// logRunners are the names of the program that runs another program and writes its output to a file
// (k8s.io/component-base/logs/kube-log-runner), the entrypoint of upstream's images.
var logRunners = []string{"go-runner", "kube-log-runner"}

// Program is a program that was read from an image.
type Program struct {
	// Path is its path in the image.
	Path string
	// Missing is the first word in the container's command that does not name a program in the image,
	// so that the container would not start. It is empty if no program is missing.
	Missing string
	// Release is the image's label with its program's release, or empty.
	Release string
}

// ExtractProgram writes an image's scheduler to the file to, which is replaced atomically. command
// lists the programs that the container's command names: wrappers, then the scheduler. A word
// without a slash is searched in the image's PATH. Without a command, or if the image does not have
// the scheduler that it names, it is a kube-scheduler at one of the usual places, or else the
// program in the image's entrypoint.
//
// An empty platform means this machine's platform. If the program does not exist, the error is
// fs.ErrNotExist.
func ExtractProgram(
	ctx context.Context, src Source, command []string, platform, to string,
) (program Program, err error) {
	err = src.open(ctx, platform, to, func(img v1.Image, name string) error {
		err := safeio.WriteFile(ctx, to, 0o644, func(f *os.File) (err error) {
			program, err = extractProgram(ctx, img, command, src.bounds(), f)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the kube-scheduler of image %s: %w", name, err)
		}
		return nil
	})
	return program, err
}

func extractProgram(ctx context.Context, img v1.Image, command []string, l limits, f *os.File) (Program, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return Program{}, err
	}
	config := file.Config
	var named []string
	if len(command) > 0 {
		named = lookup(config, command[len(command)-1])
	}
	s := &search{
		candidates: slices.Concat(named, schedulerPlaces, entrypoint(config)), copied: -1,
		links: map[string]string{}, executable: map[string]bool{},
	}
	w := &walker{limits: l, links: s.links, visit: func(at string, h *tar.Header, r io.Reader) error {
		s.executable[at] = h.Mode&0o111 != 0
		return s.copy(r, h, at, l, f)
	}}
	if err := w.walk(ctx, img); err != nil {
		return Program{}, err
	}
	program := Program{Missing: s.missing(config, command), Release: config.Labels[LabelRelease]}
	for i, candidate := range s.candidates {
		if i == s.copied {
			program.Path = candidate
			return program, nil
		}
		if target := s.resolve(candidate); target != "" {
			program.Path = candidate
			return program, errors.Join(truncate(f), extract(ctx, img, target, l, f))
		}
	}
	return Program{}, fmt.Errorf("it is at none of %s: %w", strings.Join(s.candidates, ", "), fs.ErrNotExist)
}

// ReleaseLabel returns the label with the release of the program in an image for any platform, or
// "" if it has none.
func ReleaseLabel(ctx context.Context, reference string, keychain authn.Keychain) (string, error) {
	found, _, err := Base{Reference: reference}.candidates(ctx, keychain)
	if err != nil || len(found) == 0 {
		return "", err
	}
	if err := checkConfigSize(found[0].image); err != nil {
		return "", err
	}
	config, err := found[0].image.ConfigFile()
	if err != nil {
		return "", err
	}
	return config.Config.Labels[LabelRelease], nil
}

// lookup returns the paths at which a container runtime searches a program, in this order.
func lookup(config v1.Config, word string) []string {
	switch {
	case path.IsAbs(word):
		return []string{path.Clean(word)}
	case strings.Contains(word, "/"):
		return []string{path.Join("/", config.WorkingDir, word)}
	}
	dirs := defaultPath
	for _, variable := range config.Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			dirs = value
		}
	}
	var paths []string
	for _, dir := range strings.Split(dirs, ":") {
		if path.IsAbs(dir) {
			paths = append(paths, path.Join(dir, word))
		}
	}
	return paths
}

// entrypoint returns where the program that the image starts can be: the first absolute path in its
// entrypoint and command, or the first word.
func entrypoint(config v1.Config) []string {
	words := slices.DeleteFunc(slices.Concat(config.Entrypoint, config.Cmd), func(word string) bool {
		return slices.Contains(logRunners, path.Base(word))
	})
	if i := slices.IndexFunc(words, path.IsAbs); i >= 0 {
		return lookup(config, words[i])
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return nil
	}
	return lookup(config, words[0])
}

// search looks for the first of several programs in one pass over the layers: reading them again
// means another download.
type search struct {
	candidates []string // absolute paths, the best first
	// copied is the index of the candidate that the output file has, or -1.
	copied int

	links      map[string]string
	executable map[string]bool // the regular files
}

// copy copies a file if it is a better candidate than the last copied one.
func (s *search) copy(r io.Reader, h *tar.Header, at string, l limits, f *os.File) error {
	i := slices.Index(s.candidates, "/"+at)
	if i < 0 || !s.executable[at] || s.copied >= 0 && s.copied < i {
		return nil
	}
	s.copied = i
	return errors.Join(truncate(f), copyOut(r, h, l, f))
}

// resolve follows the links in a path and returns the program's name there, "" if there is none.
func (s *search) resolve(candidate string) string {
	name := strings.TrimPrefix(candidate, "/")
	for range maxLinks {
		if s.executable[name] {
			return name
		}
		target, linked := follow(name, s.links)
		if !linked {
			return ""
		}
		name = target
	}
	return ""
}

// missing returns the first word that names no program.
func (s *search) missing(config v1.Config, command []string) string {
	for _, word := range command {
		if !slices.ContainsFunc(lookup(config, word),
			func(candidate string) bool { return s.resolve(candidate) != "" }) {
			return word
		}
	}
	return ""
}

func truncate(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return errors.Join(err, f.Truncate(0))
}
