package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// admission is what an API server answers to the requests of the check.
type admission struct {
	accounts    string // names of ServiceAccounts
	impersonate bool
	uses        string // security context constraints that the scheduler's ServiceAccount may use
	pods        bool   // pods of the scheduler run
	message     string // of the answer to the creation; empty: the pod is admitted
	code        int
	reason      metav1.StatusReason
	kind        string // of the details

	quotas string // namespaces with a ResourceQuota for system-cluster-critical

	onlyOwn bool // the cluster forbids to impersonate its users, whatever the user may

	creator string // seen
	created corev1.Pod
}

func (a *admission) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	status := func(code int, reason metav1.StatusReason, kind, message string) {
		s := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: message}
		if kind != "" {
			s.Details = &metav1.StatusDetails{Kind: kind}
		}
		answer(code, s)
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/sched/")
	switch {
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		review.Status.Allowed = a.impersonate || review.Spec.ResourceAttributes.Verb != "impersonate"
		answer(http.StatusCreated, review)
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		review.Status.Allowed = review.Spec.User == "system:serviceaccount:sched:a" &&
			review.Spec.ResourceAttributes.Name == a.uses
		answer(http.StatusCreated, review)
	case strings.HasPrefix(path, "serviceaccounts/"):
		name := strings.TrimPrefix(path, "serviceaccounts/")
		if !slices.Contains(strings.Fields(a.accounts), name) {
			status(http.StatusNotFound, metav1.StatusReasonNotFound, "serviceaccounts", "not found")
			return
		}
		answer(http.StatusOK, corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Name: name}})
	case strings.HasSuffix(path, "/resourcequotas") || path == "resourcequotas":
		list := corev1.ResourceQuotaList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuotaList"}}
		namespace := "sched"
		if path != "resourcequotas" {
			namespace = "kube-system"
		}
		if slices.Contains(strings.Fields(a.quotas), namespace) {
			list.Items = []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "gcp-critical-pods"},
				Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{
					MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass,
						Operator: corev1.ScopeSelectorOpIn, Values: []string{"system-node-critical", "system-cluster-critical"}}}}}}}
		}
		answer(http.StatusOK, list)
	case path == "pods" && r.Method == http.MethodGet:
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		if a.pods {
			list.Items = make([]corev1.Pod, 1)
		}
		answer(http.StatusOK, list)
	case path == "pods" && r.URL.Query().Get("dryRun") == "All":
		a.creator = r.Header.Get("Impersonate-User")
		_ = json.NewDecoder(r.Body).Decode(&a.created)
		if a.onlyOwn && a.creator != "" {
			status(http.StatusForbidden, metav1.StatusReasonForbidden, "serviceaccounts", `serviceaccounts `+
				`"replicaset-controller" is forbidden: User "x" cannot impersonate resource "serviceaccounts" in API group "" in the `+
				`namespace "kube-system"`)
			return
		}
		if a.message == "" {
			answer(http.StatusCreated, a.created)
			return
		}
		status(a.code, a.reason, a.kind, a.message)
	default:
		status(http.StatusNotFound, metav1.StatusReasonNotFound, "", r.Method+" "+r.URL.String())
	}
}

// try runs the check for a Deployment in namespace sched.
func (a *admission) try(t *testing.T) Outcome {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	user := int64(65532)
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "sched", Name: "a"}}
	deployment.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ownership.LabelName: ownership.Scheduler}},
		Spec: corev1.PodSpec{ServiceAccountName: "a", PriorityClassName: "system-cluster-critical",
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user}},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
	return outcomeOf(t, cfg, "pod-admitted", Options{Name: "a", Namespace: "sched", Image: "registry.example.com/s:v1",
		Objects: []*unstructured.Unstructured{{Object: fields}}})
}

func TestAPodOfTheDeploymentIsTriedAsItsReplicaSetWouldCreateIt(t *testing.T) {
	a := &admission{accounts: "a default", impersonate: true}
	if got := a.try(t); got.Status != Passed || got.Detail != "" {
		t.Errorf("got %+v", got)
	}
	if a.creator != "system:serviceaccount:kube-system:replicaset-controller" {
		t.Errorf("created by %q", a.creator)
	}
	owner := metav1.GetControllerOf(&a.created)
	if owner == nil || owner.Kind != "ReplicaSet" || a.created.Spec.ServiceAccountName != "a" ||
		a.created.Spec.PriorityClassName != "system-cluster-critical" || a.created.Labels[ownership.LabelName] == "" {
		t.Errorf("created %+v", a.created)
	}
}

// TestWhatTheTrialDoesNotShowIsNamed has no failure that the Deployment's own pod may not have.
func TestWhatTheTrialDoesNotShowIsNamed(t *testing.T) {
	const constraint = `pods "a-" is forbidden: unable to validate against any security context constraint: [...]`
	denied := func(a admission) *admission {
		a.code, a.reason, a.kind = http.StatusForbidden, metav1.StatusReasonForbidden, "pods"
		return &a
	}
	for name, tc := range map[string]struct {
		server *admission
		status Status
		detail string
	}{
		"a first deployment": {&admission{accounts: "default", impersonate: true}, Passed,
			"with ServiceAccount default: a does not exist yet"},
		"no impersonation": {&admission{accounts: "a"}, Passed, "created by the user of the kubeconfig"},
		"impersonation is forbidden": {&admission{accounts: "a", impersonate: true, onlyOwn: true}, Passed,
			"created by the user of the kubeconfig"},
		"no ServiceAccount": {&admission{impersonate: true}, Unknown,
			"namespace sched has no ServiceAccount default"},
		"a proxy that only reads": {&admission{accounts: "a", impersonate: true, code: http.StatusForbidden,
			reason: metav1.StatusReasonForbidden, message: "read-only"}, Unknown, "read-only"},
		"a user who may not create pods": {denied(admission{accounts: "a", impersonate: true, message: `pods is forbidden: ` +
			`User "system:serviceaccount:kube-system:replicaset-controller" cannot create resource "pods" in API group "" in the ` +
			`namespace "sched"`}), Unknown, "no permission"},
		"a webhook without dry run": {&admission{accounts: "a", impersonate: true, code: http.StatusBadRequest,
			reason:  metav1.StatusReasonBadRequest,
			message: `admission webhook "a.example.com" does not support dry run`}, Unknown, "does not support dry run"},
		"a webhook that fails": {&admission{accounts: "a", impersonate: true, code: http.StatusInternalServerError,
			reason:  metav1.StatusReasonInternalError,
			message: `Internal error occurred: failed calling webhook "a.example.com"`}, Unknown, "failed calling webhook"},
		"a policy for users": {denied(admission{accounts: "a",
			message: `admission webhook "a.example.com" denied the request: users create no pods`}), Unknown,
			"the policy may decide by the creator"},
		"an admission plugin that reads the user's permissions": {denied(admission{accounts: "a",
			message: `pods "a-" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`}), Unknown,
			"created by the user of the kubeconfig"},
		"a quota that the running pods use": {denied(admission{accounts: "a", impersonate: true, pods: true,
			message: `pods "a-" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`}), Unknown,
			"the pods that would be replaced count"},
		"a constraint of an account to come": {denied(admission{accounts: "default", impersonate: true, uses: "anyuid",
			message: constraint}), Unknown, "a does not exist yet, and may use anyuid"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.server.try(t); got.Status != tc.status || !strings.Contains(got.Detail, tc.detail) {
				t.Errorf("got %+v, want %s with %q", got, tc.status, tc.detail)
			}
		})
	}
}

func TestQuotasForThePriorityClassAreNamedIfNoPodCanBeTried(t *testing.T) {
	for quotas, want := range map[string]bool{"": false, "kube-system": true, "kube-system sched": false, "sched": false} {
		got := (&admission{impersonate: true, quotas: quotas}).try(t)
		named := strings.Contains(got.Detail, "gcp-critical-pods") && strings.Contains(got.Detail, "spec.priorityClassName")
		if got.Status != Unknown || named != want {
			t.Errorf("%s: got %+v", quotas, got)
		}
	}
}

// TestRefusalsOfThePodFailTheCheck has the texts of the API server's own plugins and of others.
func TestRefusalsOfThePodFailTheCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int
		reason  metav1.StatusReason
		kind    string
		message string
		hint    string
	}{
		// Without a reason: pkg/admission/plugin/resourcequota/controller.go returns a plain error.
		"GKE outside of kube-system": {http.StatusInternalServerError, "", "",
			"insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]",
			"spec.priorityClassName"},
		"quota": {http.StatusForbidden, metav1.StatusReasonForbidden, "pods",
			`pods "a-" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`, "raise the quota"},
		"quota of limits": {http.StatusForbidden, metav1.StatusReasonForbidden, "pods",
			`pods "a-" is forbidden: failed quota: q: must specify limits.memory`, "spec.resources"},
		"no class": {http.StatusForbidden, metav1.StatusReasonForbidden, "pods",
			`pods "a-" is forbidden: no PriorityClass with name infra was found`, "spec.priorityClassName"},
		"Pod Security": {http.StatusForbidden, metav1.StatusReasonForbidden, "pods",
			`pods "a-" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`,
			"--credentials serviceaccount"},
		"OpenShift": {http.StatusForbidden, metav1.StatusReasonForbidden, "pods",
			`pods "a-" is forbidden: unable to validate against any security context constraint: [provider "anyuid": ` +
				`Forbidden: not usable by user or serviceaccount]`,
			"accepts user 65532: `oc adm policy add-scc-to-user nonroot-v2 -z a -n sched`"},
		"Gatekeeper": {http.StatusForbidden, metav1.StatusReasonForbidden, "",
			`admission webhook "validation.gatekeeper.sh" denied the request: [repos] image is not from an allowed registry`, ""},
		"Kyverno, with status 400": {http.StatusBadRequest, "", "",
			`admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/sched/a- was blocked`, ""},
		"policy of the API server": {http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "pods",
			`pods "a-" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, ""},
		"invalid": {http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "Pod",
			`Pod "a-" is invalid: spec.tolerations[3].operator: Unsupported value: "Gt"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{accounts: "default", impersonate: true, code: tc.code, reason: tc.reason, kind: tc.kind,
				message: tc.message}
			got := a.try(t)
			if got.Status != Failed || !strings.Contains(got.Detail, tc.message) || !strings.Contains(got.Hint, tc.hint) ||
				(got.Hint == "") != (tc.hint == "") {
				t.Errorf("got %+v, want the hint %q", got, tc.hint)
			}
			if !strings.Contains(got.Detail, "a does not exist yet") {
				t.Errorf("the detail does not name the ServiceAccount: %s", got.Detail)
			}
		})
	}
}
