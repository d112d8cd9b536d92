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

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
)

// inputsFormat is raised when the way of building changes what comes out, so
// that binaries built before are not taken for what is built now.
const inputsFormat = 1

// recipe is everything that decides the bytes of binaries, apart from which
// program they are and for which platform.
type recipe struct {
	info Info
	// files is the generated module by slash-separated path. It is empty for
	// a tree, which is told by its commit and the hash of what was changed.
	files map[string][]byte
	tree  string
	// with is what plugins added to the files; nil without any.
	with *plugins.Set
	// target is the module that the plugins are compiled into, and against its name in an error.
	target  plugins.Target
	against string
	// mod is the value of -mod, tags and ldflags those of the flags.
	mod, tags, ldflags string
	// prepare returns the folder to compile in and GOWORK for it.
	prepare func(context.Context) (dir, workspace string, err error)
	// explain may say more of a failure to find the packages.
	explain func(context.Context, *Error) error
}

// target is one binary to be.
type target struct {
	Program  Program
	Platform Platform
	// prints is what the binary must print for --version, if it knows that flag.
	prints string
	key    string
}

func (t target) String() string { return fmt.Sprintf("%s for %s", t.Program.Name, t.Platform) }

// openAPI is how the definitions that go into a binary are generated, or 0.
func (t target) openAPI() int {
	if t.Program.Package == apiserverPackage {
		return openAPIFormat
	}
	return 0
}

// targets returns every program for every platform, each with the hash of its inputs.
func (r *recipe) targets(programs []Program, platforms []Platform) ([]target, error) {
	var all []target
	for _, platform := range platforms {
		for _, program := range programs {
			t := target{Program: program, Platform: platform}
			if kubernetesPrograms[program.Name] {
				t.prints = "Kubernetes " + r.info.Release
			}
			var err error
			if t.key, err = r.key(t); err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// kubernetesPrograms are those that print the release for --version. kubectl
// has a command for that, whose output differs between releases.
var kubernetesPrograms = map[string]bool{
	KubeScheduler: true, "kube-apiserver": true, "kube-controller-manager": true, "kubelet": true, "kube-proxy": true,
}

// key hashes the inputs of a binary. JSON sorts the files by name.
func (r *recipe) key(t target) (string, error) {
	data, err := json.Marshal(struct {
		Format               int
		Go, Release          string
		Files                map[string][]byte
		Tree                 string
		Mod, Tags, LinkFlags string
		Program              Program
		Platform             Platform
		// OpenAPI is left out of the hash where nothing is generated.
		OpenAPI int `json:",omitempty"`
	}{inputsFormat, r.info.Go, r.info.Release, r.files, r.tree, r.mod, r.tags, r.ldflags, t.Program, t.Platform, t.openAPI()})
	if err != nil {
		return "", err
	}
	return hash(data), nil
}

// combined is the hash of several keys; of one it is the key itself.
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

// hashFile returns size and hash of a file.
func hashFile(path string) (size int64, sum string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	size, err = io.Copy(h, file)
	return size, hex.EncodeToString(h.Sum(nil)), errors.Join(err, file.Close())
}

// write writes the generated module into a folder.
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
