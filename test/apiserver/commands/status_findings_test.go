//go:build linux

package commands

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/versions"
)

// second is a second scheduler, or an extender, whose status is read.
type second struct {
	name, ns, node string
	client         *apply.Client
	plan           *deploy.Plan
	// release is the release of the API server, unreachable the reason why the API server does not
	// reach the extender.
	release     versions.Release
	unreachable error
	later       time.Time
}

func testRelease(t *testing.T) versions.Release {
	t.Helper()
	release, err := versions.Parse(apiserver.Release)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func newSecond(ctx context.Context, t *testing.T, name string) *second {
	t.Helper()
	client, err := apply.New(server.Config(), apply.Options{Log: zaptest.NewLogger(t), ControllerGrace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := &second{name: name, ns: server.Namespace(t), node: name + "-node", client: client, release: testRelease(t),
		later: time.Now().Add(2 * time.Minute)}
	node(ctx, t, s.node, masterLabel)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		owned, err := client.Owned(ctx, name, s.ns)
		if err == nil {
			_, err = client.Delete(ctx, owned)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return s
}

// deploy deploys a scheduler without findings: it has a revision, a ready pod and a lease.
func (s *second) deploy(ctx context.Context, t *testing.T, spec v1alpha1.CustomSchedulerSpec, facts deploy.Facts) {
	t.Helper()
	if spec.Credentials = deploy.CredentialsServiceAccount; facts.Node != nil {
		spec.Credentials = deploy.CredentialsNode
	}
	request := &v1alpha1.CustomScheduler{Spec: spec}
	request.Name, request.Namespace = s.name, s.ns
	facts.Image, facts.Branch, facts.Now = "localhost/s:v1", s.release.String(), time.Now()
	var err error
	if s.plan, err = deploy.NewPlan(request, facts); err != nil {
		t.Fatal(err)
	}
	revision, err := s.client.SaveRevision(ctx, s.revision(t, s.plan))
	if err == nil {
		_, err = s.client.Apply(ctx, s.plan.Objects)
	}
	if err == nil {
		err = s.client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	s.pod(ctx, t, ownership.Scheduler)
	s.hold(ctx, t, s.name+"-1_0f1e")
}

// pod creates a ready pod of the scheduler or extender.
func (s *second) pod(ctx context.Context, t *testing.T, app string) {
	t.Helper()
	no := false
	pods := server.Client(t).CoreV1().Pods(s.ns)
	if _, err := server.Client(t).CoreV1().ServiceAccounts(s.ns).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-1",
			Labels: map[string]string{ownership.LabelName: app, ownership.LabelInstance: s.name}},
		Spec: corev1.PodSpec{NodeName: s.node, AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{Name: app, Image: "localhost/s:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: app, Ready: true}}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hold makes a holder renew the lease until later.
func (s *second) hold(ctx context.Context, t *testing.T, holder string) {
	t.Helper()
	leases, seconds := server.Client(t).CoordinationV1().Leases(s.ns), int32(15)
	if err := leases.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil && holder != s.name+"-1_0f1e" {
		t.Fatal(err)
	}
	_, err := leases.Create(ctx,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &metav1.MicroTime{Time: time.Now()},
			RenewTime: &metav1.MicroTime{Time: s.later},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// revision returns the revision that a deployment of the plan saves.
func (s *second) revision(t *testing.T, plan *deploy.Plan) apply.Revision {
	t.Helper()
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	return apply.Revision{RevisionInfo: apply.RevisionInfo{Name: s.name, Namespace: s.ns},
		Objects: plan.Objects,
		Record:  record}
}

// read reads the status; all of it must be known.
func (s *second) read(ctx context.Context, t *testing.T) *health.Workload {
	t.Helper()
	result, err := observe.Run(ctx, observe.Options{
		Name: s.name, Namespace: s.ns, Release: s.release, Kube: server.Client(t), Objects: s.client,
		Metrics: kubeapi.Metrics{Pods: server.Client(t).CoreV1()},
		Answers: func(context.Context, string, string) error { return s.unreachable },
	})
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(result.Schedulers, result.Extenders)
	at := slices.IndexFunc(all, func(w *health.Workload) bool { return w.Namespace == s.ns })
	if at < 0 {
		t.Fatalf("%s is missing in %+v", s.name, all)
	}
	for _, unknown := range all[at].Unknown {
		if !strings.Contains(unknown, "has no deployed revision") {
			t.Errorf("unknown: %s", unknown)
		}
	}
	return all[at]
}

// expect fails the test unless the findings have exactly these codes.
func (s *second) expect(ctx context.Context, t *testing.T, want ...health.Code) []health.Finding {
	t.Helper()
	found := s.read(ctx, t).Findings(s.later)
	var codes []health.Code
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	if !slices.Equal(codes, want) {
		t.Fatalf("findings %v, want %v:\n%v", codes, want, (&health.FindingsError{Findings: found}).Error())
	}
	return found
}

// The fields name who changed them and when. Applying the revision again ends it.
func TestStatusNamesWhoEditedWhichField(t *testing.T) {
	ctx := testContext(t)
	s := newSecond(ctx, t, "edited")
	s.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{}, deploy.Facts{})
	s.expect(ctx, t)
	edit := []byte(
		`{"metadata":{"annotations":{"of": "another tool"}},"spec":{"template":{"spec":{"containers":[{"name":"kube-scheduler","image":"localhost/other:v1"}]}}}}`)
	_, err := server.Client(t).AppsV1().Deployments(s.ns).Patch(ctx, s.name, types.StrategicMergePatchType, edit,
		metav1.PatchOptions{FieldManager: "by-hand"})
	if err != nil {
		t.Fatal(err)
	}
	found := s.expect(ctx, t, health.Drifted)
	for _, text := range []string{
		`containers[name=kube-scheduler].image is "localhost/other:v1", recorded is "localhost/s:v1" (by-hand at 2`} {
		if !strings.Contains(found[0].Detail, text) {
			t.Errorf("the detail lacks %q:\n%s", text, found[0].Detail)
		}
	}
	if strings.Count(found[0].Detail, "\n") != 1 {
		t.Errorf("more than one field differs:\n%s", found[0].Detail)
	}
	if _, err := s.client.Apply(ctx, s.plan.Objects); err != nil {
		t.Fatal(err)
	}
	s.expect(ctx, t)
}

func TestStatusReportsASchedulerThatDependsOnOneOfSeveralNodes(t *testing.T) {
	ctx := testContext(t)
	s := newSecond(ctx, t, "dependent")
	node(ctx, t, "dependent-other", masterLabel)
	credentials := nodeCredentials(t, time.Now().AddDate(1, 0, 0))
	credentials.Server = "https://10.9.8.7:6443"
	s.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{}, deploy.Facts{Node: credentials})
	s.expect(ctx, t) // the address of a load balancer
	err := setNode(ctx, t, s.node, func(n *corev1.Node) {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.9.8.7"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	s.expect(ctx, t, health.DependsOnNode)
}

func TestStatusFindingsOfAnExtenderAndItsCaller(t *testing.T) {
	ctx := testContext(t)
	e := newSecond(ctx, t, "ghost")
	labels := map[string]string{ownership.LabelManagedBy: ownership.Manager, ownership.LabelName: ownership.Extender,
		ownership.LabelInstance: e.name}
	pods := map[string]string{ownership.LabelInstance: e.name}
	_, err1 := server.Client(t).AppsV1().Deployments(e.ns).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: e.name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pods}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: pods},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: ownership.Extender, Image: "localhost/e:v1"}}},
		}},
	}, metav1.CreateOptions{})
	_, err2 := server.Client(t).CoreV1().Services(e.ns).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: e.name,
			Labels: labels}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: e.name, Labels: map[string]string{discoveryv1.LabelServiceName: e.name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
	}
	slice, err3 := server.Client(t).DiscoveryV1().EndpointSlices(e.ns).Create(ctx, slice, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	e.pod(ctx, t, ownership.Extender)
	e.expect(ctx, t)

	caller := newSecond(ctx, t, "caller")
	calls := v1alpha1.Extender{Name: e.name, FilterVerb: "filter", Ignorable: new(bool),
		Deployed: &v1alpha1.DeployedExtender{URLPrefix: "https://10.96.0.9", ServerName: e.name}}
	caller.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{Extenders: []v1alpha1.Extender{calls}}, deploy.Facts{})
	caller.expect(ctx, t)

	e.unreachable = errors.New("no route")
	e.expect(ctx, t, health.ExtenderUnreachable)
	e.unreachable = nil
	no := false
	slice.Endpoints[0].Conditions.Ready = &no
	if _, err := server.Client(t).DiscoveryV1().EndpointSlices(e.ns).Update(ctx, slice,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.expect(ctx, t, health.ExtenderNoEndpoints)
	if err := server.Client(t).AppsV1().Deployments(e.ns).Delete(ctx, e.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	caller.expect(ctx, t, health.ExtenderMissing)
}

// The certificate expires while the scheduler runs. A valid one ends it.
func TestStatusFindingOfACertificateThatExpires(t *testing.T) {
	ctx := testContext(t)
	s := newSecond(ctx, t, "expiring")
	s.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{},
		deploy.Facts{Node: nodeCredentials(t, time.Now().Add(time.Minute))})
	end := s.later // the certificate has expired then, and the lease is valid
	s.later = time.Now()
	s.expect(ctx, t, health.CertificateExpiring)
	s.later = end
	found := s.expect(ctx, t, health.CertificateExpired)
	if !strings.Contains(found[0].Text, "expired on "+time.Now().UTC().Format("2006")) {
		t.Errorf("got %q", found[0].Text)
	}
	plan, err := deploy.NewPlan(s.plan.Request, deploy.Facts{Node: nodeCredentials(t, time.Now().AddDate(1, 0, 0)),
		Image: "localhost/s:v1", Branch: s.release.String(), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := s.client.SaveRevision(ctx, s.revision(t, plan))
	if err == nil {
		_, err = s.client.Apply(ctx, plan.Objects)
	}
	if err == nil {
		err = s.client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	s.expect(ctx, t)
}

// setNode changes the status of a node.
func setNode(ctx context.Context, t *testing.T, name string, change func(*corev1.Node)) error {
	t.Helper()
	nodes := server.Client(t).CoreV1().Nodes()
	n, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(n)
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}
