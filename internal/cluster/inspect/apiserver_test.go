package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// apiServer answers the requests that Detect makes, with pages, selectors and
// refusals as a real one does. Behaviour against a real one is shown in the lab.
type apiServer struct {
	gitVersion string
	nodes      []corev1.Node
	pods       []corev1.Pod
	configMaps map[string]map[string]string // by namespace/name
	// labelled are the names of ConfigMaps in kube-system by their label, key=value.
	labelled    map[string]string
	secrets     map[string]map[string][]byte // by namespace/name
	lease       *coordinationv1.Lease
	deployments []appsv1.Deployment
	resources   map[string][]string // by apiVersion
	webhooks    []admissionv1.MutatingWebhookConfiguration
	arbiters    []admissionv1.ValidatingWebhookConfiguration
	// servers are the addresses behind the Service kubernetes.
	servers []string
	// forbid answers 403 to paths for which it returns true.
	forbid func(path string) bool
	// expire answers 410 to the first request for a further page of nodes.
	expire bool

	mu sync.Mutex
	// wholeNodes counts the nodes that were sent in full, largestPage is the
	// largest limit asked for, 0 if a list was asked for without one.
	wholeNodes  int
	largestPage int
}

func (s *apiServer) start(t testing.TB) *rest.Config {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if s.forbid != nil && s.forbid(path) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, forbiddenText(path))
		return
	}
	switch {
	case path == "/version":
		answer(w, map[string]string{"major": "1", "minor": "24", "gitVersion": s.gitVersion, "platform": "linux/amd64"})
	case s.resources[strings.TrimPrefix(path, "/apis/")] != nil:
		list := metav1.APIResourceList{GroupVersion: strings.TrimPrefix(path, "/apis/")}
		for _, name := range s.resources[list.GroupVersion] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		answer(w, list)
	case path == "/api/v1/nodes" && strings.Contains(r.Header.Get("Accept"), "as=Table"):
		s.nodeTable(w, r)
	case path == "/api/v1/nodes":
		matching := match(r, s.nodes, func(n corev1.Node) (map[string]string, fields.Set) {
			return n.Labels, fields.Set{"metadata.name": n.Name}
		})
		items, meta := page(r, matching)
		s.mu.Lock()
		s.wholeNodes += len(items)
		s.mu.Unlock()
		answer(w, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: meta,
			Items: items})
	case strings.HasPrefix(path, "/api/v1/nodes/"):
		name := strings.TrimPrefix(path, "/api/v1/nodes/")
		at := slices.IndexFunc(s.nodes, func(n corev1.Node) bool { return n.Name == name })
		if at < 0 {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
			return
		}
		n := s.nodes[at]
		n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		answer(w, n)
	case strings.HasPrefix(path, "/api/v1/namespaces/kube-system/pods/"):
		name := strings.TrimPrefix(path, "/api/v1/namespaces/kube-system/pods/")
		at := slices.IndexFunc(s.pods, func(p corev1.Pod) bool { return p.Namespace == kubeSystem && p.Name == name })
		pod := s.pods[at]
		pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
		answer(w, pod)
	case strings.HasSuffix(path, "/namespaces/default/endpoints/kubernetes") && s.servers != nil:
		subset := corev1.EndpointSubset{} //nolint:staticcheck // for 1.20
		for _, address := range s.servers {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address})
		}
		answer(w, corev1.Endpoints{Subsets: []corev1.EndpointSubset{subset}}) //nolint:staticcheck // for 1.20
	case strings.HasSuffix(path, "/namespaces/default/endpointslices/kubernetes") && s.servers != nil:
		answer(w, discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Addresses: s.servers}}})
	case strings.HasSuffix(path, "/mutatingwebhookconfigurations"):
		answer(w, admissionv1.MutatingWebhookConfigurationList{Items: s.webhooks})
	case strings.HasSuffix(path, "/validatingwebhookconfigurations"):
		answer(w, admissionv1.ValidatingWebhookConfigurationList{Items: s.arbiters})
	case strings.HasSuffix(path, "/deployments"):
		s.listDeployments(w, r)
	case strings.HasSuffix(path, "/pods"):
		s.listPods(w, r)
	case strings.HasSuffix(path, "/configmaps"):
		list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
		if name := s.labelled[r.URL.Query().Get("labelSelector")]; name != "" {
			list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		answer(w, list)
	case strings.Contains(path, "/configmaps/"):
		part := strings.Split(path, "/")
		data, ok := s.configMaps[part[4]+"/"+part[6]]
		if !ok {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
			return
		}
		answer(w, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Data: data})
	case strings.Contains(path, "/secrets/"):
		part := strings.Split(path, "/")
		data, ok := s.secrets[part[4]+"/"+part[6]]
		if !ok {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
			return
		}
		answer(w, corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: data})
	case path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler" && s.lease != nil:
		answer(w, s.lease)
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil {
		s.largestPage = max(s.largestPage, limit)
	} else if strings.HasSuffix(path, "s") && path != "/version" {
		s.largestPage = 1 << 30
	}
}

func (s *apiServer) listPods(w http.ResponseWriter, r *http.Request) {
	namespace := ""
	if part := strings.Split(r.URL.Path, "/"); len(part) == 6 {
		namespace = part[4]
	}
	matching := match(r, s.pods, func(p corev1.Pod) (map[string]string, fields.Set) {
		return p.Labels, fields.Set{"spec.nodeName": p.Spec.NodeName}
	})
	var visible []corev1.Pod
	for _, pod := range matching {
		if namespace == "" || pod.Namespace == namespace {
			visible = append(visible, pod)
		}
	}
	items, meta := page(r, visible)
	if strings.Contains(r.Header.Get("Accept"), "as=Table") {
		table := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta,
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}}
		for _, pod := range items {
			table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{pod.Name}})
		}
		answer(w, table)
		return
	}
	answer(w, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta, Items: items})
}

func (s *apiServer) listDeployments(w http.ResponseWriter, r *http.Request) {
	_, namespace, _ := strings.Cut(strings.TrimSuffix(r.URL.Path, "/deployments"), "/namespaces/")
	matching := match(r, s.deployments, func(d appsv1.Deployment) (map[string]string, fields.Set) {
		return d.Labels, fields.Set{}
	})
	matching = slices.DeleteFunc(matching,
		func(d appsv1.Deployment) bool { return namespace != "" && d.Namespace != namespace })
	items, meta := page(r, matching)
	answer(w, appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{Kind: "DeploymentList", APIVersion: "apps/v1"},
		ListMeta: meta, Items: items})
}

// nodeTable prints nodes as kube-apiserver does
// (pkg/printers/internalversion/printers.go, printNode).
func (s *apiServer) nodeTable(w http.ResponseWriter, r *http.Request) {
	if s.expire && r.URL.Query().Get("continue") != "" {
		s.expire = false
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, "the provided continue parameter is too old")
		return
	}
	items, meta := page(r, s.nodes)
	table := metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta}
	for _, name := range []string{"Name", "Status", "Roles", "Age", "Version", "Internal-IP", "External-IP", "OS-Image",
		"Kernel-Version", "Container-Runtime"} {
		table.ColumnDefinitions = append(table.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: name, Type: "string", Description: strings.Repeat("what the column is for ", 8)})
	}
	for _, node := range items {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			node.Name, "Ready", "<none>", "12d", node.Status.NodeInfo.KubeletVersion, internalIP(node), "<none>",
			"Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64", "containerd://1.6.20",
		}})
	}
	answer(w, table)
}

func internalIP(node corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return "<none>"
}

func match[T any](r *http.Request, all []T, of func(T) (map[string]string, fields.Set)) []T {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	var found []T
	for _, item := range all {
		if itsLabels, itsFields := of(item); byLabel.Matches(labels.Set(itsLabels)) && byField.Matches(itsFields) {
			found = append(found, item)
		}
	}
	return found
}

// page cuts out the page that limit and continue ask for.
func page[T any](r *http.Request, all []T) ([]T, metav1.ListMeta) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit == 0 || from+limit >= len(all) {
		return all[from:], metav1.ListMeta{ResourceVersion: "1"}
	}
	return all[from : from+limit], metav1.ListMeta{ResourceVersion: "1", Continue: strconv.Itoa(from + limit)}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: message,
		Reason: reason, Code: int32(code),
	})
}

// forbiddenText returns the message of kube-apiserver
// (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
func forbiddenText(path string) string {
	part := strings.Split(strings.Trim(path, "/"), "/")
	resource := part[len(part)-1]
	text := fmt.Sprintf(`%s is forbidden: User "nobody" cannot list resource "%s" in API group ""`, resource, resource)
	if strings.Contains(path, "/namespaces/") {
		return text + ` in the namespace "kube-system"`
	}
	return text + " at the cluster scope"
}

func node(name string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "v1.24.3"},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func tainted(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
	}
}

func kubelet(version string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = version }
}

func provider(id string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.ProviderID = id }
}

// staticPod is the mirror of a static pod on the network of its node.
func staticPod(name, onNode string, containers ...corev1.Container) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-" + onNode, Namespace: "kube-system",
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"},
		},
		Spec:   corev1.PodSpec{NodeName: onNode, HostNetwork: true, Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true})
	}
	return p
}

func container(name, image string, command ...string) corev1.Container {
	return corev1.Container{Name: name, Image: image, Command: command}
}

// pmkMaster is a master shaped like Platform9's.
func pmkMaster() *apiServer {
	const name = "10.0.0.1"
	holder := "10.0.0.1_6b1f"
	renewed := metav1.NewMicroTime(testNow.Add(-2 * time.Second))
	return &apiServer{
		gitVersion: "v1.24.3",
		nodes: []corev1.Node{node(name, labelled("node-role.kubernetes.io/master", ""),
			tainted("node-role.kubernetes.io/master", "true")), node("10.0.0.2")},
		pods: []corev1.Pod{staticPod("k8s-master", name,
			container("kube-controller-manager", "localhost/kube-controller-manager:v1.24.3", "kube-controller-manager",
				"--profiling=false"),
			container("kube-apiserver", "localhost/kube-apiserver:v1.24.3", "kube-apiserver", "--secure-port=443"),
			container("kube-scheduler", "localhost/kube-scheduler:v1.24.3", "kube-scheduler",
				"--config=/srv/kubernetes/configs/kube-scheduler.yaml", "--leader-elect=true"),
		)},
		lease: &coordinationv1.Lease{
			TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
			Spec:     coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
		},
	}
}
