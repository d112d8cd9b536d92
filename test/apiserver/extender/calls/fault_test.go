//go:build linux

package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// retriesItself is the first minor whose scheduler retries a pod automatically after an error, for
// example of an extender. Pods of older schedulers wait until something changes in the cluster, or
// for minutes (pkg/scheduler/internal/queue/scheduling_queue.go).
const retriesItself = 29

// trouble is an extender with a failure that begin starts and end repairs.
type trouble struct {
	asked      profiles.Extender
	begin, end func()
	// says are parts of the message in the event of a waiting pod.
	says []string
}

// failures make the extender that will fail: by ending, by not answering, and by an answer that the
// scheduler refuses. The messages are the releases' own.
var failures = map[string]func(context.Context, *testing.T, scene) trouble{
	"killed": killed,
	"hanging": func(ctx context.Context, t *testing.T, s scene) trouble {
		f := behindFaulty(ctx, t, s, hangs, "/filter", "Client.Timeout exceeded")
		f.asked.HTTPTimeout = 100 * time.Millisecond // each pod waits as long for each verb, one after the other
		return f
	},
	"wrong node names": func(ctx context.Context, t *testing.T, s scene) trouble {
		return behindFaulty(ctx, t, s, namesNobody,
			`claims a filtered node "nobody" which is not found in the input node list`)
	},
}

// moreFailures are the same in other ways. The messages about garbage and half an answer do not
// name the extender.
var moreFailures = map[string]func(context.Context, *testing.T, scene) trouble{
	"expired": expired,
	"status 500": func(ctx context.Context, t *testing.T, s scene) trouble {
		return behindFaulty(ctx, t, s, answers500, "failed filter with extender at URL ", "/filter, code 500")
	},
	"garbage": func(ctx context.Context, t *testing.T, s scene) trouble {
		return behindFaulty(ctx, t, s, answersGarbage, "invalid character '<' looking for beginning of value")
	},
	"half a body": func(ctx context.Context, t *testing.T, s scene) trouble {
		return behindFaulty(ctx, t, s, answersHalf, "unexpected EOF")
	},
}

// namesExtender reports whether the event names the extender by its URL.
func (f trouble) namesExtender() bool { return !slices.ContainsFunc(f.says, isVague) }

func isVague(part string) bool {
	return strings.HasPrefix(part, "invalid character") || part == "unexpected EOF"
}

// harmless starts an extender whose policy rejects nothing here.
func harmless(ctx context.Context, t *testing.T, s scene) *controlplane.Extender {
	t.Helper()
	e := s.NewExtender(t, "http", "--config", configure(t, "[{name: BlockAll, args: {namespaces: [none]}}]"))
	e.Start()
	e.Await(ctx, t, "")
	return e
}

func behindFaulty(ctx context.Context, t *testing.T, s scene, mode int32, says ...string) trouble {
	f := startFaulty(t, harmless(ctx, t, s).URL)
	return trouble{
		asked: extender(f.URL), says: says,
		begin: func() { f.mode.Store(mode) }, end: func() { f.mode.Store(passes) },
	}
}

func killed(ctx context.Context, t *testing.T, s scene) trouble {
	e := harmless(ctx, t, s)
	return trouble{
		asked: extender(e.URL), says: []string{"/filter", "connection refused"},
		begin: e.Kill,
		end: func() {
			e.Start()
			e.Await(ctx, t, "")
		},
	}
}

// expired: the extender is restarted with a certificate that ended years ago, and gets a good one
// while it runs.
func expired(ctx context.Context, t *testing.T, s scene) trouble {
	dir := t.TempDir()
	good := certify(t, certificates.Set{}, time.Now())
	files(t, dir, good)
	e := s.secured(t, dir)
	e.Start()
	e.Await(ctx, t, "")
	asked := extender(e.URL)
	asked.EnableHTTPS, asked.TLS = true, &profiles.ExtenderTLS{CAData: good.CA.Cert}
	return trouble{
		asked: asked, says: []string{"/filter", "certificate has expired or is not yet valid"},
		begin: func() {
			e.Kill()
			files(t, dir, certify(t, certificates.Set{CA: good.CA}, time.Now().AddDate(-10, 0, 0)))
			e.Start()
			e.Await(ctx, t, "")
		},
		end: func() { files(t, dir, good) },
	}
}

// crowd is the three schedulers and their pods. Each is called as the namespace of its pods, and
// all share the nodes of the group.
type crowd struct {
	scene
	group string
}

// newCrowd starts two schedulers with an extender, that ignore its failing and not, and one
// without.
func newCrowd(ctx context.Context, t *testing.T, s scene, group string, asked profiles.Extender) crowd {
	t.Helper()
	yes, no := true, false
	ignoring, waiting := asked, asked
	ignoring.Ignorable, waiting.Ignorable = &yes, &no
	c := crowd{s, group}
	for name, extenders := range map[string][]profiles.Extender{"waiting": {waiting}, "ignoring": {ignoring},
		"bystander": nil} {
		t.Cleanup(func() { s.Clear(t, c.namespace(name)) })
		s.Namespace(ctx, t, c.namespace(name))
		s.NewScheduler(t, controlplane.Scheduler{Name: c.namespace(name), Extenders: extenders}).Start()
	}
	return c
}

func (c crowd) namespace(scheduler string) string { return c.group + "-" + scheduler }

// arrive creates a share of each scheduler's pods.
func (c crowd) arrive(ctx context.Context, t *testing.T, share string, of, parts int) {
	t.Helper()
	for scheduler, n := range map[string]int{"waiting": waitingPods, "ignoring": ignoringPods,
		"bystander": bystanderPods} {
		var pods []*corev1.Pod
		for _, name := range controlplane.Numbered(share, n*of/parts) {
			pods = append(pods, controlplane.Pod(c.namespace(scheduler), c.group, name))
		}
		c.Create(ctx, t, c.namespace(scheduler), pods...)
	}
}

// awaitBound waits until all pods of a scheduler are bound.
func (c crowd) awaitBound(ctx context.Context, t *testing.T, scheduler string, meanwhile func()) {
	t.Helper()
	run.Eventually(t, "all pods of the scheduler "+scheduler+" are bound", func(ctx context.Context) (bool, string) {
		unbound := c.Unbound(ctx, t, c.namespace(scheduler))
		if unbound > 0 && meanwhile != nil {
			meanwhile()
		}
		return unbound == 0, fmt.Sprint(unbound, " are not")
	})
}

func failureWhilePodsArrive(t *testing.T, s scene, make func(context.Context, *testing.T, scene) trouble) {
	ctx := testContext(t)
	f := make(ctx, t, s)
	group, _ := s.group(ctx, t)
	s.Nodes(ctx, t, group, controlplane.Numbered(group, 20)...)
	c := newCrowd(ctx, t, s, group, f.asked)
	c.arrive(ctx, t, "before", 1, 3)
	f.begin()
	c.arrive(ctx, t, "after", 2, 3)
	c.awaitBound(ctx, t, "bystander", nil)
	c.awaitBound(ctx, t, "ignoring", nil)
	c.awaitMessage(ctx, t, f)
	if unbound := c.Unbound(ctx, t, c.namespace("waiting")); unbound < waitingPods*2/3 {
		t.Errorf("%d pods wait for the extender; %d came since it fails", unbound, waitingPods*2/3)
	}
	f.end()
	c.awaitBound(ctx, t, "waiting", c.stir(ctx, t))
}

// awaitMessage waits until the event of a pod names the failure and the extender.
func (c crowd) awaitMessage(ctx context.Context, t *testing.T, f trouble) {
	t.Helper()
	run.Eventually(t, "the event of a waiting pod says why", func(ctx context.Context) (bool, string) {
		seen := map[string]int{}
		for _, message := range c.Failures(ctx, t, c.namespace("waiting"), "") {
			seen[message]++
			has := func(part string) bool { return !strings.Contains(message, part) }
			if !slices.ContainsFunc(f.says, has) && (!f.namesExtender() || strings.Contains(message, f.asked.URLPrefix)) {
				t.Logf("%s says: %s", c.release, message)
				return true, ""
			}
		}
		return false, fmt.Sprint(seen)
	})
}

// stir returns a function that makes schedulers retry pods, and nil if the scheduler retries them
// itself.
func (c crowd) stir(ctx context.Context, t *testing.T) func() {
	if c.Release.Minor >= retriesItself {
		return nil
	}
	return func() { c.Touch(ctx, t, c.group) }
}

// prometheusGone: without metrics the policy is neutral, so no pod waits, with ignorable true or
// false. /readyz reports it.
func prometheusGone(t *testing.T, s scene) {
	ctx := testContext(t)
	group, nodes := s.group(ctx, t, "a", "b")
	load, server, e := loadaware(ctx, t, s, nodes)
	load.Load(map[string]float64{nodes[0]: full, nodes[1]: idle})
	e.Await(ctx, t, "")
	awaitLoad(ctx, t, e, s.pod(group, "p"), nodes[1], nodes[0])
	c := newCrowd(ctx, t, s, group, extender(e.URL))
	c.arrive(ctx, t, "before", 1, 3)
	server.Stop()
	c.arrive(ctx, t, "after", 2, 3)
	for _, scheduler := range []string{"bystander", "ignoring", "waiting"} {
		c.awaitBound(ctx, t, scheduler, c.stir(ctx, t))
	}
	run.Eventually(t, "the extender reports that it is not ready", func(ctx context.Context) (bool, string) {
		err := e.Ready(ctx, "")
		return err != nil && strings.Contains(err.Error(), "does Prometheus answer"), fmt.Sprint(err)
	})
	e.Await(ctx, t, "policies")
	server.Start(ctx, t)
	e.Await(ctx, t, "")
	awaitLoad(ctx, t, e, s.pod(group, "p"), nodes[1], nodes[0])
}
