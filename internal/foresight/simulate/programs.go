package simulate

import (
	"cmp"
	"context"
	"os/exec"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Programs are the programs for a simulation: data, so that it can run elsewhere.
type Programs struct {
	Scheduler kubescheduler.Scheduler `json:"scheduler"`
	// KubeAPIServer and Etcd are paths.
	KubeAPIServer string `json:"kubeAPIServer"`
	Etcd          string `json:"etcd"`
	// Origins are lines about the programs: their versions, origins and digests.
	Origins []string `json:"origins,omitempty"`
}

// Compile finds or compiles a simulation's programs. h is the snapshot's header.
func Compile(ctx context.Context, s *session.Session, r pack.Scheduler, h *snapshot.Header) (p Programs, err error) {
	release, err := ReleaseOf(ctx, s, r.Branch, h)
	if err != nil {
		return p, err
	}
	if p.Scheduler, err = kubescheduler.Compile(ctx, s, r, release); err != nil {
		return p, err
	}
	const apiServer = "kube-apiserver"
	request := programs.Request{Release: release, Names: []string{apiServer}}
	if p.Etcd, err = exec.LookPath(programs.Etcd); err != nil || filepath.IsAbs(s.Programs.From) {
		request.Names = append(request.Names, programs.Etcd)
	}
	found, err := pack.Finder(s).Find(ctx, request)
	if err != nil {
		return p, err
	}
	p.KubeAPIServer, p.Origins = found[apiServer].Path, []string{p.Scheduler.Origin}
	for _, name := range request.Names {
		p.Origins = append(p.Origins, found[name].String())
	}
	p.Etcd = cmp.Or(found[programs.Etcd].Path, p.Etcd)
	return p, nil
}

// ReleaseOf returns a branch's release, by default the snapshot's release.
func ReleaseOf(ctx context.Context, s *session.Session, branch string, h *snapshot.Header) (versions.Release, error) {
	if branch == pack.BranchAuto {
		if branch = h.Release; branch == "" {
			return versions.Release{}, problem.Invalidf("specify it, for example --branch v1.24.3",
				"the snapshot does not have the release of its cluster")
		}
	}
	return pack.ResolveBranch(ctx, s, branch)
}

// FindEtcd returns the path to an etcd without libraries, for a release.
func FindEtcd(ctx context.Context, s *session.Session, release versions.Release) (string, error) {
	found, err := pack.Finder(s).Find(ctx, programs.Request{Release: release, Names: []string{programs.Etcd}})
	return found[programs.Etcd].Path, err
}
