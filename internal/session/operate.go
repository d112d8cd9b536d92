package session

import (
	"context"
	"io"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/cluster/podlog"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// Logs prints the logs of the replicas of a scheduler to w, of the last period since, or all logs
// if since is 0. With follow it prints new lines until ctx ends.
func (s *Session) Logs(ctx context.Context, sp *spec.Spec, since time.Duration, follow bool, w io.Writer) error {
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	return podlog.Print(ctx, cfg, podlog.Options{
		Name: sp.Name, Namespace: sp.Namespace, Container: manifest.ContainerName, Since: since, Follow: follow, Warn: s.Warn, Log: s.Log,
	}, w)
}

// Credentials describes the credentials of a scheduler.
func (s *Session) Credentials(ctx context.Context, sp *spec.Spec) (*deploy.CredentialsReport, error) {
	_, deps, err := s.connectDeps()
	if err != nil {
		return nil, err
	}
	readFile, err := s.readNodeFile()
	if err != nil {
		return nil, err
	}
	owned, err := deps.Applier.Owned(ctx, sp.Name, sp.Namespace)
	if err != nil {
		return nil, err
	}
	return deploy.DescribeCredentials(owned, sp.Namespace, sp.Name, readFile)
}
