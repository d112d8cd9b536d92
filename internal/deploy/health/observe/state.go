package observe

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// cluster is what the API server returned about the schedulers and extenders in a cluster.
type cluster struct {
	workloads []*workload
	// extenders are the names of the extenders whose Deployment exists.
	extenders []string
	// nodes are the pods' nodes. A node that does not exist is empty.
	nodes map[string]*corev1.Node
	// controlPlane are the control-plane nodes. It is nil if no workload depends on them.
	controlPlane []corev1.Node
	arbiter      *health.Arbiter
	// unknown are the parts of the arbiter that could not be read.
	unknown []string
}

// workload is what the API server returned about a scheduler or an extender. Fields are nil if they
// were not read or do not apply. A lease or a Service that does not exist is empty.
type workload struct {
	types.NamespacedName
	kind health.Kind
	// app is its label, and its container's name. who is its name in messages.
	app, who string
	// live is the Deployment. deployment is the same or, if it does not exist, the recorded revision's
	// Deployment.
	live, deployment *appsv1.Deployment
	// recorded is the newest deployed revision, pending a newer one that is being deployed.
	recorded *apply.Revision
	pending  *apply.RevisionInfo
	// undeployed is set if the revisions were read, and none was deployed.
	undeployed  bool
	comparisons []apply.Comparison
	// mounted are the Deployment, and the Secrets and ConfigMaps that its pods mount.
	mounted       []*unstructured.Unstructured
	configuration profiles.Summary
	credentials   *deploy.CredentialsReport
	pods          []corev1.Pod // nil if they could not be listed
	lease         *coordinationv1.Lease
	leader        *corev1.Pod
	waiting       *health.Waiting
	route         *health.Route
	metrics       []podMetrics
	service       *corev1.Service
	endpoints     []discoveryv1.Endpoint
	unreachable   error
	events        []corev1.Event
	// requests are the requests whose errors explain why a part of the state is unknown.
	requests []request
}

// request is the result of a request to the API server. err may be nil.
type request struct {
	doing string
	err   error
}

// podMetrics are a pod's metrics, or the reason why they were not read.
type podMetrics struct {
	pod, text string
	err       error
}

// recordedDeployment returns a revision's Deployment, or nil.
func recordedDeployment(revision *apply.Revision) *appsv1.Deployment {
	for _, o := range revision.Objects {
		var d appsv1.Deployment
		if o.GetKind() == "Deployment" && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d) == nil {
			return &d
		}
	}
	return nil
}

// container returns the container of the scheduler or extender in a Deployment, or nil.
func (w *workload) container(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == w.app })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// port returns the scheduler's port, 0 if it is unknown.
func (w *workload) port() int {
	if w.live == nil {
		return 0
	}
	if c := w.container(w.live); c != nil && len(c.Ports) > 0 {
		return int(c.Ports[0].ContainerPort)
	}
	return 0
}

// copiesNode reports whether a scheduler's credentials are copied from a node. They name that
// node's API server, or a load balancer.
func (w *workload) copiesNode() bool {
	return w.credentials != nil && (w.credentials.Mode == deploy.CredentialsNode ||
		w.credentials.Mode == deploy.CredentialsNodeInline)
}
