package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/deploy/extenders"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
	"github.com/pmk-sched/pmk-sched/internal/replace"
)

// proofTime is how long a scheduler may take to call an extender for a new pod.
const proofTime = 30 * time.Second

// proveExtender returns the proof that a scheduler reaches an extender.
func (s *Session) proveExtender(cfg *rest.Config) extenders.Proof {
	return func(ctx context.Context, caller extenders.SchedulerRef, w manifest.Wiring, namespace string) error {
		call := w.Extender.WithDefaults()
		o := verify.ExtenderOptions{
			Options:  verify.Options{Name: caller.Name, Namespace: caller.Namespace, Timeout: proofTime, Log: s.Log},
			Extender: call.Name, ExtenderNamespace: namespace, Port: manifest.ExtenderPort, URL: call.URLPrefix,
			Filters: call.FilterVerb != "", Required: call.Ignorable == nil || !*call.Ignorable,
		}
		for _, r := range call.ManagedResources {
			o.Resources = append(o.Resources, r.Name)
		}
		return s.Step("prove that scheduler "+caller.Name+" calls extender "+call.Name, func() error {
			unknown, err := verify.Extender(ctx, cfg, o)
			if unknown != "" {
				s.Warn("whether scheduler " + caller.Name + " reaches extender " + call.Name + " is not proven: " + unknown)
			}
			return err
		})
	}
}

// callFromNode makes the default scheduler of the node call the extender, and proves it. If the scheduler does not reach the extender, it works
// without it again, unless it called the extender before.
func (e *Extender) callFromNode(ctx context.Context, w manifest.Wiring, before bool) error {
	n := e.node
	if err := replace.CallExtender(ctx, n.deps, n.info, n.o, w); err != nil {
		return err
	}
	if others := len(n.info.ControlPlane.Nodes) - 1; others > 0 {
		e.s.Warn(fmt.Sprintf("whether the default scheduler reaches extender %s is not proven: the one of another of the %d control-plane nodes may lead", w.Extender.Name, others+1))
		return nil
	}
	err := e.x.Prove(ctx, extenders.SchedulerRef{Namespace: metav1.NamespaceSystem, Name: corev1.DefaultSchedulerName}, w, cmp.Or(e.x.Options.Namespace, metav1.NamespaceSystem))
	if err == nil || before {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.o.Timeout)
	defer cancel()
	return errors.Join(err, replace.LeaveExtender(ctx, n.deps, n.info, n.o, w.Extender.Name, []string{w.Extender.URLPrefix}))
}
