// Package programs finds the Kubernetes programs that labs and simulations run. Kubernetes
// publishes these programs, so they are compiled only if they cannot be found anywhere else:
//
//   - in a directory that the user names, or in envtest's directory (directory.go);
//   - in the cache: compiled before, or downloaded before (store.go);
//   - in the Kubernetes images and on the download site (published.go, download.go), or on mirrors
//     of both;
//   - in the release's Go modules, which internal/artifact/build compiles.
//
// Each program is reported with its origin and its SHA-256 digest. A download is used only if its
// digest is the published one and the program prints the version that it was found by.
package programs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Values of Finder.From that are not a directory.
const (
	// Auto searches the directory of envtest, the cache, the published programs and the compiler.
	Auto = "auto"
	// Build compiles all programs, or takes those that were compiled before.
	Build = "build"
	// Published never compiles a Kubernetes program.
	Published = "published"
)

// Names of programs that are not main packages in Kubernetes.
const (
	// Etcd is the API server's database.
	Etcd = "etcd"
	// Runner is the entrypoint of the images that Kubernetes releases. It is the same program in all
	// images, and its source is part of Kubernetes from 1.23 on.
	Runner = "go-runner"
	// Kwok simulates the nodes of labs. Kubernetes does not publish it: it is compiled unless a
	// bundle had it.
	Kwok = "kwok"
)

// hasOwnVersion reports whether a program does not belong to a Kubernetes release.
func hasOwnVersion(name string) bool { return name == Etcd || name == Runner || name == Kwok }

// The modules that the runner and kwok are compiled from. KwokVersion works with every supported
// release.
const (
	runnerModule, runnerVersion = "k8s.io/component-base", "v0.24.3"
	runnerPackage               = runnerModule + "/logs/kube-log-runner"
	kwokModule                  = "sigs.k8s.io/kwok"
	kwokPackage                 = kwokModule + "/cmd/kwok"
	KwokVersion                 = "v0.8.0"
)

// Program is a program for this machine.
type Program struct {
	Name string `json:"name"`
	// Version is the Kubernetes release, or the etcd version.
	Version string `json:"version,omitempty"`
	// Origin is the place where the program was found: a path, an image with its digest, a URL, or
	// a module.
	Origin string `json:"origin"`
	// SHA256 is the digest of the file in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
	// Path is the file's path. Copy it, never change it.
	Path string `json:"-"`
}

// String returns a line for the user.
func (p Program) String() string {
	return strings.TrimSpace(p.Name+" "+p.Version) + " from " + p.Origin + " (sha256:" + p.SHA256 + ")"
}

// Finder finds programs.
type Finder struct {
	build.Environment
	// From is Auto, Build, Published, or the absolute path of a directory with the programs. Defaults
	// to Auto.
	From string
	// Assets is the directory of envtest (KUBEBUILDER_ASSETS). It may be empty.
	Assets string
	// Registry replaces DefaultRegistry, and Downloads replaces DefaultDownloads.
	Registry, Downloads string
	// Note reports a message. It may be nil.
	Note func(text string)

	// reach is the maximum time for servers to answer at all. Defaults to reachTime.
	reach time.Duration
}

// Request names programs.
type Request struct {
	Release versions.Release
	// Names are the names of Kubernetes programs, such as kubelet, and Etcd, Runner or Kwok.
	Names []string
	// EtcdVersion is the version of etcd, such as v3.5.3. If it is empty, it is the version in a
	// directory, or the version that was downloaded or unpacked for the release, or
	// build.EtcdVersion.
	EtcdVersion string
}

// etcdVersion returns the version to download or to compile. Some release's kubeadm runs every
// requested version, so Kubernetes publishes its image (DefaultEtcdVersion in
// cmd/kubeadm/app/constants/constants.go; build.EtcdVersion is 1.36's).
func (r Request) etcdVersion() string { return cmp.Or(r.EtcdVersion, build.EtcdVersion) }

// Find returns the programs by name. It reports each program that was not in the cache.
func (f *Finder) Find(ctx context.Context, r Request) (found map[string]Program, err error) {
	found = map[string]Program{}
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool { return found[name].Path != "" })
	}
	if filepath.IsAbs(f.From) {
		if found, err = f.fromDirectory(ctx, r); err != nil {
			return nil, err
		}
	} else if err := f.findElsewhere(ctx, r, found, missing); err != nil {
		return nil, err
	}
	compiled, err := f.compile(ctx, r, missing())
	maps.Copy(found, compiled)
	return found, err
}

// findElsewhere adds to found the programs that are not in a directory that the user names and need
// no compiler. missing returns the missing programs' names.
func (f *Finder) findElsewhere(
	ctx context.Context, r Request, found map[string]Program, missing func() []string,
) error {
	if !slices.Contains([]string{"", Auto, Build, Published}, f.From) {
		return problem.Invalidf("use auto, published, build, or the path of a directory", "invalid source of programs %q",
			f.From)
	}
	if f.from() == Auto {
		maps.Copy(found, f.fromAssets(ctx, r))
	}
	if f.from() != Published {
		compiled, err := f.compiledBefore(ctx, r, missing())
		if err != nil {
			return err
		}
		maps.Copy(found, compiled)
	}
	if f.from() != Build {
		published, err := f.published(ctx, r, missing())
		maps.Copy(found, published)
		return f.withoutPublished(err, missing())
	}
	return nil
}

func (f *Finder) from() string { return cmp.Or(f.From, Auto) }

// withoutPublished returns err unless the missing programs can be compiled instead.
func (f *Finder) withoutPublished(err error, missing []string) error {
	var unavailable *UnavailableError
	switch {
	case err == nil:
		return nil
	case f.from() == Published || !errors.As(err, &unavailable):
		return err
	}
	f.note("%v; compiling %s", err, strings.Join(missing, ", "))
	return nil
}

func (f *Finder) note(format string, args ...any) {
	if f.Note != nil {
		f.Note(fmt.Sprintf(format, args...))
	}
}

// report reports a program that is not in the cache yet.
func (f *Finder) report(p Program) { f.note("%s", p) }

// Kubernetes returns the names of the release programs that every lab runs.
func Kubernetes() []string {
	return []string{"kube-apiserver", "kube-controller-manager", build.KubeScheduler, "kubelet", "kube-proxy", "kubectl"}
}

// OfLabs returns the names of the programs that simulations and labs with any layout run.
func OfLabs() []string { return append(Kubernetes(), "kubeadm", Runner, Etcd, Kwok) }
