package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// Routes returns a function that reads the routes of the cluster that are not suspended. What that
// one returns is the scheduler that they give a new pod, or "". Its error says that this cannot be
// told: the labels of the pod's namespace cannot be read, or a route takes a share of such pods. It
// reads the labels of a namespace once, and is for one goroutine.
func Routes(s *session.Session) (func(context.Context) (func(*corev1.Pod) (string, error), error), error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	cluster, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	return func(ctx context.Context) (func(*corev1.Pod) (string, error), error) {
		rules, err := readRules(ctx, cluster)
		if err != nil {
			return nil, err
		}
		read := namespaces{cluster, map[string]labels.Set{}}
		return func(pod *corev1.Pod) (string, error) {
			return route.Choose(rules, pod, func() (labels.Set, error) { return read.labels(ctx, pod.Namespace) })
		}, nil
	}, nil
}

// readRules returns the rules that are not suspended, in the order in which API servers apply them.
func readRules(ctx context.Context, cluster dynamic.Interface) ([]route.Rule, error) {
	registered, err := route.Read(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var rules []route.Rule
	for _, o := range registered {
		if _, suspended := suspension.Since(o.Unstructured); suspended {
			continue
		}
		rule, err := route.Decode(o.GetAnnotations())
		if err != nil {
			return nil, fmt.Errorf("read the route %s: %w", o.GetName(), err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// namespaces reads the labels of namespaces, and remembers them.
type namespaces struct {
	cluster dynamic.Interface
	known   map[string]labels.Set
}

// labels returns the labels of a namespace. One that does not exist has none but its name.
func (n namespaces) labels(ctx context.Context, name string) (labels.Set, error) {
	if set, known := n.known[name]; known {
		return set, nil
	}
	o, err := n.cluster.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		n.known[name] = nil
	case err != nil:
		return nil, kubeapi.Explain("read the labels of namespace "+name, err)
	default:
		n.known[name] = o.GetLabels()
	}
	return n.known[name], nil
}
