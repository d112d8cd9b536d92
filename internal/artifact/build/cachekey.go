package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

// inputsFormat is raised when a change of this package changes binaries, so that previously built
// binaries are not used.
const inputsFormat = 1

// recipe is everything that decides the bytes of binaries, apart from the program and the platform.
type recipe struct {
	info Info
	// files is the generated module by slash-separated path. It is empty for a working tree, which is
	// identified by its commit and the hash of its changes.
	files map[string][]byte
	tree  string
	// plugins are the plugins whose files are in the module. It is nil if there are none.
	plugins *plugins.Set
	// target is the module that the plugins are compiled into, and against its name in an error.
	target  plugins.Target
	against string
	// mod, tags and ldflags are the flags' values.
	mod, tags, ldflags string
	// targets are the binaries to build.
	targets []target
	// prepare creates the directory to compile in.
	prepare func(context.Context) (*prepared, error)
	// explain completes the error of a failure to resolve the packages; it may be nil.
	explain func(context.Context, *Error) error
}

type target struct {
	Program  Program
	Platform Platform
	// prints is the expected output of --version. It is empty if the program does not have that flag.
	prints string
	key    string
}

func (t target) String() string { return fmt.Sprintf("%s for %s", t.Program.Name, t.Platform) }

// openAPI returns the format of the OpenAPI definitions that are generated for a binary, or 0.
func (t target) openAPI() int {
	if t.Program.Package == apiserverPackage {
		return openAPIFormat
	}
	return 0
}

// setTargets sets the targets to every program for every platform, each with its inputs' hash.
func (r *recipe) setTargets(programs []Program, platforms []Platform) (err error) {
	for _, platform := range orHost(platforms) {
		for _, program := range programs {
			t := target{Program: program, Platform: platform}
			if printsRelease[program.Name] && strings.HasPrefix(r.info.Module, kubernetes) {
				t.prints = "Kubernetes " + r.info.Release
			}
			if t.key, err = r.key(t); err != nil {
				return err
			}
			r.targets = append(r.targets, t)
		}
	}
	return nil
}

// printsRelease lists the Kubernetes programs that print the release for --version. kubectl has a
// command for that, whose output differs between releases.
var printsRelease = map[string]bool{
	KubeScheduler: true, "kube-apiserver": true, "kube-controller-manager": true, "kubelet": true, "kube-proxy": true,
}

// key hashes a binary's inputs. JSON sorts the files by name.
func (r *recipe) key(t target) (string, error) {
	data, err := json.Marshal(struct {
		Format               int
		Go, Release          string
		Files                map[string][]byte
		Tree                 string
		Mod, Tags, LinkFlags string
		Program              Program
		Platform             Platform
		// OpenAPI is not part of the hash if nothing is generated.
		OpenAPI int `json:",omitempty"`
	}{inputsFormat, r.info.Go, r.info.Release, r.files, r.tree, r.mod, r.tags, r.ldflags, t.Program, t.Platform,
		t.openAPI()})
	if err != nil {
		return "", err
	}
	return hash(data), nil
}

// combined returns one hash for several keys; for one it is the key itself.
func combined(targets []target) string {
	if len(targets) == 1 {
		return targets[0].key
	}
	var keys []string
	for _, t := range targets {
		keys = append(keys, t.key)
	}
	return hash([]byte(strings.Join(keys, "\n")))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// HashFile returns the size in bytes and the SHA-256 digest of a file, in lower-case hexadecimal.
func HashFile(path string) (size int64, sum string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	size, err = io.Copy(h, file)
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, file.Close())
}

func (r *recipe) write(dir string) error {
	for name, data := range r.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
