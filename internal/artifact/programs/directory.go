package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// fromDirectory returns the programs in the directory that the user names. They may be from another
// patch of the release's minor. Kwok is not a Kubernetes program and may be absent.
func (f *Finder) fromDirectory(ctx context.Context, r Request) (map[string]Program, error) {
	found := map[string]Program{}
	for _, name := range r.Names {
		p, err := inDirectory(ctx, f.From, name, r)
		if name == Kwok && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, problem.Invalidf("use a directory that has all programs of the release for this machine, or --programs auto",
				"take %s from %s: %w", name, f.From, err)
		}
		f.report(p)
		found[name] = p
	}
	return found, nil
}

// fromAssets returns the programs in envtest's directory if its API server is from the release's
// minor. envtest has one release for all projects on a machine, so a different release is not an
// error.
func (f *Finder) fromAssets(ctx context.Context, r Request) map[string]Program {
	found := map[string]Program{}
	if f.Assets == "" {
		return found
	}
	if _, err := inDirectory(ctx, f.Assets, "kube-apiserver", r); err != nil {
		return found
	}
	for _, name := range r.Names {
		if p, err := inDirectory(ctx, f.Assets, name, r); err == nil {
			f.report(p)
			found[name] = p
		}
	}
	return found
}

func inDirectory(ctx context.Context, dir, name string, r Request) (Program, error) {
	file, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return Program{}, err
	}
	if _, err := os.Stat(file); err != nil {
		return Program{}, err
	}
	version, err := versionOf(ctx, name, file)
	if err != nil {
		return Program{}, err
	}
	if err := sameMinor(name, version, r); err != nil {
		return Program{}, err
	}
	_, sum, err := build.HashFile(file)
	return Program{Name: name, Version: version, Origin: file, SHA256: sum, Path: file}, err
}

// sameMinor checks a program's version. Any etcd serves a release; kubeadm expects a version.
func sameMinor(name, version string, r Request) error {
	if hasOwnVersion(name) {
		if name == Etcd && r.EtcdVersion != "" && version != r.EtcdVersion {
			return fmt.Errorf("expected version %s, got %s", r.EtcdVersion, version)
		}
		return nil
	}
	got, err := versions.Parse(version)
	if err != nil {
		return fmt.Errorf("read the version: %w", err)
	}
	if got.Minor != r.Release.Minor {
		return fmt.Errorf("expected a program of Kubernetes 1.%d, got %s", r.Release.Minor, version)
	}
	return nil
}
