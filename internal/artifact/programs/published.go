package programs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// DefaultRegistry holds the Kubernetes images (kubeadm's default, cmd/kubeadm/app/apis/kubeadm).
	DefaultRegistry = "registry.k8s.io"
	// DefaultDownloads holds the programs for nodes, with checksums (kubernetes.io/releases/download).
	DefaultDownloads = "https://dl.k8s.io"

	// fetchTime is the maximum time to download one program.
	fetchTime = 10 * time.Minute
	// together is the number of concurrent downloads.
	together = 3
)

// images are the programs that Kubernetes publishes in images, each with its path there
// (build/server-image, cluster/images/etcd). The other programs are on the download site.
var images = map[string]struct{ image, path string }{
	"kube-apiserver":          {"kube-apiserver", "/usr/local/bin/kube-apiserver"},
	"kube-controller-manager": {"kube-controller-manager", "/usr/local/bin/kube-controller-manager"},
	"kube-scheduler":          {"kube-scheduler", "/usr/local/bin/kube-scheduler"},
	"kube-proxy":              {"kube-proxy", "/usr/local/bin/kube-proxy"},
	Etcd:                      {"etcd", "/usr/local/bin/etcd"},
	Runner:                    {"kube-scheduler", "/go-runner"}, // the smallest of the images that have it
}

// published returns the named programs as Kubernetes publishes them, from the cache or from the
// network. What has arrived is returned with the error, too. The error is an [*UnavailableError] if
// programs cannot be had from there at all.
func (f *Finder) published(ctx context.Context, r Request, names []string) (map[string]Program, error) {
	found, store := map[string]Program{}, f.store(r)
	var absent []string
	for _, name := range names {
		switch p, has := store.load(name, r); {
		case has:
			found[name] = p
		case name != Kwok:
			absent = append(absent, name)
		}
	}
	if len(absent) == 0 {
		return found, nil
	}
	if runtime.GOOS != "linux" {
		return found, &UnavailableError{cause: fmt.Errorf("no control plane is published for %s", runtime.GOOS)}
	}
	if err := f.checkServers(ctx, absent); err != nil {
		return found, err
	}
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for _, name := range absent {
		group.Go(func() error {
			p, err := f.fetch(groupCtx, store, name, r)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = p
			f.report(p)
			return nil
		})
	}
	return found, group.Wait()
}

// fetch downloads a program, checks it, and adds it to the store.
func (f *Finder) fetch(ctx context.Context, s store, name string, r Request) (p Program, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	file, err := s.temporary(name)
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(filepath.Dir(file))
	from := f.downloadURL(name, r)
	if _, inImage := images[name]; inImage {
		from = f.imageReference(name, r)
	}
	p = Program{Name: name, Path: file}
	err = f.OnStep.Do("download "+name+" from "+from, func() error {
		if _, inImage := images[name]; inImage {
			p.Origin, err = extract(ctx, from, images[name].path, file)
		} else {
			p.Origin, err = from, f.download(ctx, from, file)
		}
		if err != nil {
			return err
		}
		if p.Version, err = versionOf(ctx, name, file); err == nil {
			err = exactVersion(p, r)
		}
		return problem.WithHint(err, "the file at "+from+" is not the program; --programs build compiles it")
	})
	if err != nil {
		return p, fmt.Errorf("download %s: %w", name, err)
	}
	return s.add(p)
}

// exactVersion checks that a published program is the requested one.
func exactVersion(p Program, r Request) error {
	want := r.Release.String()
	switch p.Name {
	case Runner:
		return nil
	case Etcd:
		want = r.etcdVersion()
	case Kwok:
		want = KwokVersion
	}
	if p.Version != want {
		return fmt.Errorf("expected version %s, got %s", want, p.Version)
	}
	return nil
}

// SchedulerImage returns the image with a release's kube-scheduler as Kubernetes publishes it.
func (f *Finder) SchedulerImage(release versions.Release) string {
	return f.imageReference("kube-scheduler", Request{Release: release})
}

func (f *Finder) imageReference(name string, r Request) string {
	tag := r.Release.String()
	if name == Etcd {
		tag = strings.TrimPrefix(r.etcdVersion(), "v") + "-0"
	}
	return cmp.Or(f.Registry, DefaultRegistry) + "/" + images[name].image + ":" + tag
}

// extract copies a file of an image and returns the image's name with its digest. All layers are
// read to their ends, where their digests are compared with the manifest's.
func extract(ctx context.Context, reference, path, to string) (origin string, err error) {
	if origin, _, err = image.Resolve(ctx, reference, nil); err != nil {
		if image.IsNotFound(err) {
			err = &UnavailableError{cause: err}
		}
		return "", err
	}
	got, err := image.ExtractProgram(ctx, image.Source{Reference: origin}, []string{path}, build.Host().String(), to)
	if err == nil && got.Path != path {
		err = fmt.Errorf("image %s has no file %s", origin, path)
	}
	return origin, err
}
