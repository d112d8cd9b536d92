//go:build linux

package extender_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
)

// recording is a client that records what it changed.
type recording struct {
	deploy.Cluster
	changes apply.ChangeSet
}

func (r *recording) Apply(ctx context.Context, objects []*unstructured.Unstructured) (apply.ChangeSet, error) {
	changes, err := r.Cluster.Apply(ctx, objects)
	r.changes = append(r.changes, changes...)
	return changes, err
}

func (r *recording) Delete(ctx context.Context, objects []*unstructured.Unstructured) (apply.ChangeSet, error) {
	changes, err := r.Cluster.Delete(ctx, objects)
	r.changes = append(r.changes, changes...)
	return changes, err
}

// contentHash ends the name of an object that is immutable. The name in a preview differs if the
// content is decided by the API server, such as the address of a Service.
var contentHash = regexp.MustCompile(`-[0-9a-f]{10}$`)

// changed lists the changes, each object once, in order of its name.
func changed(changes apply.ChangeSet) []string {
	var list []string
	for _, c := range changes {
		if c.Action != apply.Unchanged && c.Action != apply.Absent {
			list = append(list, contentHash.ReplaceAllString(c.Object, "-HASH")+" "+string(c.Action))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// command returns the preview of a command, and the command.
type command = func(d deploy.Deps) (preview func(context.Context) (apply.ChangeSet, error),
	run func(context.Context) error)

// Every command that changes a scheduler or an extender has a preview: it must be what the command
// does.
func TestCommandsDoWhatTheirPreviewPrints(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"sched", "ext", "near", "with"} {
		w.removeInTheEnd(t, name)
	}
	authority, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(days int) certificates.Pair {
		pair, err := authority.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "system:kube-scheduler"},
			NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().AddDate(0, 0, days)})
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	first := certificate(7)
	scheduler := func(change func(*extenders.SchedulerDeployment)) command {
		s := w.schedulerDeployment("sched", v1alpha1.CustomSchedulerSpec{Credentials: deploy.CredentialsNode})
		s.Node = &inspect.NodeCredentials{
			Path: "/etc/kubernetes/scheduler.conf", Server: "https://192.0.2.1:6443", User: "system:kube-scheduler",
			CA: authority.Cert, Cert: first.Cert, Key: first.Key,
		}
		change(&s)
		return func(d deploy.Deps) (preview func(context.Context) (apply.ChangeSet, error), run func(context.Context) error) {
			return func(ctx context.Context) (apply.ChangeSet, error) {
					plan, err := extenders.PlanScheduler(ctx, d, s)
					if err != nil {
						return nil, err
					}
					return deploy.Diff(ctx, d, plan)
				}, func(ctx context.Context) error {
					_, _, err := extenders.DeployScheduler(ctx, d, s)
					return err
				}
		}
	}
	extender := func(name string, change func(*extenders.Options)) command {
		x := w.deployment(t, w.options(name), "sched")
		change(&x.Options)
		return func(d deploy.Deps) (preview func(context.Context) (apply.ChangeSet, error), run func(context.Context) error) {
			return func(ctx context.Context) (apply.ChangeSet, error) {
					plans, _, err := extenders.Plan(ctx, d, x)
					if err != nil {
						return nil, err
					}
					return extenders.DryRun(ctx, d, plans)
				}, func(ctx context.Context) error {
					_, err := extenders.Deploy(ctx, d, x)
					return err
				}
		}
	}
	current := func(ctx context.Context) (*apply.Revision, error) {
		return w.deps.Cluster.LastDeployed(ctx, w.ns, "sched")
	}
	for _, step := range []struct {
		name string
		of   command
	}{
		{"deploy", scheduler(func(*extenders.SchedulerDeployment) {})},
		{"deploy again", scheduler(func(s *extenders.SchedulerDeployment) {
			s.Request.Spec.Configuration.Preset, s.Request.Spec.Replicas = "binpack", 2
		})},
		{"deploy with an extender", scheduler(func(s *extenders.SchedulerDeployment) {
			s.Extenders = []extenders.Options{
				w.options("with")}
		})},
		{"upgrade", scheduler(func(s *extenders.SchedulerDeployment) {
			s.Branch, s.Image, s.Extenders = "v1.24.4", "localhost/scheduler:v2",
				[]extenders.Options{w.options("with")}
		})},
		{"extender deploy", extender("ext", func(*extenders.Options) {})},
		{"extender deploy again",
			extender("ext", func(o *extenders.Options) { o.Image, o.Weight = "localhost/extender:v2", 3 })},
		{"extender deploy --sidecar", extender("near", func(o *extenders.Options) { o.Sidecar = true })},
		{"credentials refresh", func(d deploy.Deps) (preview func(context.Context) (apply.ChangeSet, error),
			run func(context.Context) error) {
			pair := certificate(30)
			plan := func(ctx context.Context) (*deploy.Plan, error) {
				last, err := current(ctx)
				if err != nil {
					return nil, err
				}
				return deploy.PlanRefresh(last,
					deploy.Successor{CA: authority.Cert, Cert: pair.Cert, Key: pair.Key, Origin: "a test"}, time.Now())
			}
			return func(ctx context.Context) (apply.ChangeSet, error) {
					plan, err := plan(ctx)
					if err != nil {
						return nil, err
					}
					return deploy.Diff(ctx, d, plan)
				}, func(ctx context.Context) error {
					plan, err := plan(ctx)
					if err != nil {
						return err
					}
					_, err = deploy.Deploy(ctx, d, plan, deploy.RunOptions{})
					return err
				}
		}},
		{"rollback", func(d deploy.Deps) (preview func(context.Context) (apply.ChangeSet, error),
			run func(context.Context) error) {
			o := deploy.RollbackOptions{Name: "sched", Namespace: w.ns, To: 2, Now: time.Now()}
			info := &inspect.Info{Release: release}
			return func(ctx context.Context) (apply.ChangeSet, error) {
					plan, err := extenders.PlanRollback(ctx, d, info, o)
					if err != nil {
						return nil, err
					}
					return deploy.Diff(ctx, d, plan)
				}, func(ctx context.Context) error {
					_, _, err := extenders.RollBack(ctx, d, info, o, deploy.RunOptions{})
					return err
				}
		}},
	} {
		d := w.deps
		record := &recording{Cluster: w.deps.Cluster}
		d.Cluster = record
		preview, run := step.of(d)
		planned, err := preview(t.Context())
		if err != nil {
			t.Fatalf("%s: preview: %v", step.name, err)
		}
		if len(record.changes) > 0 {
			t.Errorf("%s: the preview changed %v", step.name, record.changes)
		}
		if err := run(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(changed(planned), changed(record.changes)); diff != "" {
			t.Errorf("%s (-printed +done):\n%s", step.name, diff)
		}
		if len(changed(planned)) == 0 {
			t.Errorf("%s changes nothing", step.name)
		}
	}
}
