// Package session connects one run of a command with its cluster, its node, the build cache and the
// user.
package session

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/steps"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Session is one run of a command.
type Session struct {
	// Connection selects the cluster.
	Connection kubeapi.ConnectOptions
	// NodeRoot is the root directory of a control-plane node's files. If it is empty, it is
	// detected. [inspect.NoNode] means that there is none.
	NodeRoot string
	// CacheDir is the build cache, Environ the go command's environment.
	CacheDir string
	Environ  []string
	// NearestRules allows releases that are not in package versions' tables, with the closest minor
	// release's rules.
	NearestRules bool
	// Programs selects where the programs for labs and simulations come from.
	Programs Programs
	// Owner is the object that schedulers are deployed for, or "" for a user's command.
	Owner string
	// Bounds limit the images of everything that the session deploys.
	Bounds Bounds
	// Confirm asks the user; the question completes "refusing to …". If it is nil, permissions that
	// only a revision adds are refused.
	Confirm func(ctx context.Context, question string) error
	// Warn and Note report one message each, OnStep each step when it begins.
	Warn, Note func(text string)
	OnStep     steps.OnStep
	Log        *zap.Logger

	// warned is the last release that CheckRelease warned of.
	warned versions.Release
}

// Bounds limit images, in addition to a request's requirements.
type Bounds struct {
	// Key is a public key, in PEM, that must have signed every image, or "".
	Key string
	// Repositories are the allowed repositories, in the form that internal/artifact/image.ParsePrefix
	// reads. If there are none, all are allowed.
	Repositories []string
}

// WithoutMessages returns a copy of the session that reports no warnings and no notes.
func (s *Session) WithoutMessages() *Session {
	q := *s
	q.Warn, q.Note = func(string) {}, func(string) {}
	return &q
}

// Quiet returns a copy of the session that reports no messages and no steps.
func (s *Session) Quiet() *Session {
	q := s.WithoutMessages()
	q.OnStep = func(string) func(error) { return func(error) {} }
	return q
}

// Programs are the settings for internal/artifact/programs, which documents them.
type Programs struct{ From, Assets, Registry, Downloads string }

// Connect returns the configuration for a client of the cluster. It sends nothing.
func (s *Session) Connect() (*rest.Config, error) { return kubeapi.Connect(s.Connection) }

// FindNodeRoot returns the root directory of this control-plane node's files, or "" if this machine
// is not one.
func (s *Session) FindNodeRoot() (string, error) { return inspect.FindNodeRoot(s.NodeRoot) }

// Inspect inspects the cluster and this node for the scheduler with that name. Both may be empty.
func (s *Session) Inspect(ctx context.Context, cfg *rest.Config, name, namespace string) (*inspect.Info, error) {
	return s.InspectWith(ctx, cfg, inspect.Options{Name: name, SchedulerNamespace: namespace})
}

// InspectWith is Inspect with more options.
func (s *Session) InspectWith(ctx context.Context, cfg *rest.Config,
	o inspect.Options) (info *inspect.Info, err error) {
	if o.NodeRoot, err = s.FindNodeRoot(); err != nil {
		return nil, err
	}
	err = s.Step("inspect the cluster", func() (err error) {
		o.Log = s.Log
		info, err = inspect.Detect(ctx, cfg, o)
		return err
	})
	return info, err
}

// CheckRelease refuses a release that is not in package versions' tables, unless NearestRules is
// set: then it warns once.
func (s *Session) CheckRelease(r versions.Release) error {
	_, err := versions.Select(r)
	if err == nil || !s.NearestRules {
		return err
	}
	if s.warned != r {
		s.Warn(fmt.Sprintf("this pmk-sched does not know Kubernetes %s: using the rules of %s", r.MinorString(), r.Nearest()))
		s.warned = r
	}
	return nil
}

// Step runs do as a step.
func (s *Session) Step(name string, do func() error) error {
	done := s.OnStep(name)
	err := do()
	done(err)
	return err
}

// User returns the user and this machine, for records about who did something.
func User() string {
	name, host := "unknown user", "unknown host"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	if at, err := os.Hostname(); err == nil {
		host = at
	}
	return name + "@" + host
}

// Holder names this process for locks.
func Holder() string { return fmt.Sprintf("%s (process %d)", User(), os.Getpid()) }
