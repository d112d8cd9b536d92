package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Server is an API server for several runs, one after the other. Close it.
type Server struct {
	s   *session.Session
	api *apiserver.Server
	// empty is etcd's revision before the first run.
	empty int64
	used  bool
	// classes is the hash of the classes with which it was started. It is empty if it was started with
	// every cluster's first ones, and a run has created others since.
	classes string
	// objects counts the nodes and pods in the runs.
	objects int
}

// reusable limits the nodes and pods that the runs on one API server may have: to remove more of
// them takes longer than to start another API server, and etcd keeps their former versions.
const reusable = 5000

// isWorn reports whether another API server is better for the next run.
func (s *Server) isWorn() bool { return s.objects > reusable }

// StartServer starts the API server for the scheduler's release, for a run with the options, which
// keep what it reads of their snapshot. Its data is in their directory.
func StartServer(ctx context.Context, s *session.Session, p Programs, o *Options) (*Server, error) {
	if err := o.readClasses(); err != nil {
		return nil, err
	}
	return startServer(ctx, s, p, o.Dir, o)
}

func startServer(ctx context.Context, s *session.Session, p Programs, dir string, o *Options) (*Server, error) {
	classes := o.firstClasses()
	api, err := apiserver.Start(ctx, apiserver.Options{
		KubeAPIServer: p.KubeAPIServer, Etcd: p.Etcd, Dir: dir, Args: apiServerArgs(p.Scheduler.Release),
		Objects: classes.Objects(), GCPercent: o.GCPercent,
	})
	if err != nil {
		return nil, err
	}
	server := &Server{s: s, api: api, classes: classes.Hash()}
	if server.empty, err = api.Revision(ctx); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return server, nil
}

// Close stops the API server.
func (s *Server) Close() error { return s.api.Close() }

// Run runs a scenario on the API server, without the objects from earlier runs. The directory in
// the options is for this run alone.
func (s *Server) Run(ctx context.Context, o Options) (*report.Report, error) {
	r, err := s.begin(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { s.objects += r.objects() }()
	if err := r.do(ctx); err != nil {
		return nil, err
	}
	return r.Report, nil
}

// Load loads the objects for a run, and leaves the scheduler to the caller.
func (s *Server) Load(ctx context.Context, o Options) (*Run, error) {
	r, err := s.begin(ctx, o)
	if err != nil {
		return nil, err
	}
	err = r.load(ctx)
	s.objects += r.objects()
	return r, err
}

// begin returns a run on the API server, which has no objects of earlier runs.
func (s *Server) begin(ctx context.Context, o Options) (*Run, error) {
	if s.used {
		if err := s.api.Reset(ctx, s.empty); err != nil {
			return nil, fmt.Errorf("remove the objects of the last run: %w", err)
		}
	}
	s.used = true
	if err := s.useClasses(ctx, &o); err != nil {
		return nil, err
	}
	return newRun(s.s, s.api, o), nil
}

// useClasses makes the API server know the classes for a run whose pods it admits, and forget an
// earlier run's classes: a StorageClass with the same name would remain.
func (s *Server) useClasses(ctx context.Context, o *Options) error {
	if err := o.readClasses(); err != nil {
		return err
	}
	switch {
	case s.classes == o.classes.Hash():
		return nil
	case !o.admits && (s.classes == "" || s.classes == load.NewClasses().Hash()):
		s.classes = "" // the run creates its classes
		return nil
	}
	first := o.firstClasses()
	err := s.s.Step("restart the API server with other classes", func() (err error) {
		if err = s.api.Restart(ctx, first.Objects()); err == nil {
			s.empty, err = s.api.Revision(ctx)
		}
		return err
	})
	if s.classes = first.Hash(); !o.admits {
		s.classes = ""
	}
	return err
}

// apiServerArgs disable request limits and the admission plugins that do not affect scheduling, or
// need controllers and services that a simulation does not have. The remaining plugins apply to
// objects from manifests: package load writes a cluster's objects to etcd. The flags enable all
// device API versions, so that its objects are served in their own, with all their fields.
func apiServerArgs(release versions.Release) []string {
	off := "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,ResourceQuota," +
		"MutatingAdmissionWebhook,ValidatingAdmissionWebhook"
	if release.Rules().PodSecurity {
		off += ",PodSecurity"
	}
	args := []string{
		"--disable-admission-plugins=" + off,
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false",
		"--profiling=false",
		// Before 1.31 the cache lists in a random order, in which a scheduler then examines the nodes.
		"--watch-cache-sizes=nodes#0",
	}
	var served []string
	for _, version := range release.Rules().DeviceAPIs {
		served = append(served, "resource.k8s.io/"+version+"=true")
	}
	if len(served) == 0 {
		return args
	}
	gates, _ := deviceArgs(release, scenario.AllDeviceGates())
	return append(append(args, gates...), "--runtime-config="+strings.Join(served, ","))
}
