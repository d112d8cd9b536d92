package signing

import (
	"context"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

func TestConditionsOfARequestAreJudged(t *testing.T) {
	for name, tt := range map[string]struct {
		conditions []certificatesv1.RequestConditionType
		approved   bool
		fails      string
	}{
		"new": {},
		"approved": {conditions: []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved},
			approved: true},
		"denied": {conditions: []certificatesv1.RequestConditionType{certificatesv1.CertificateDenied},
			fails: "was denied: Policy not now"},
		"approved and failed": {conditions: []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
			certificatesv1.CertificateFailed}, fails: "the signer failed: Policy not now"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
			for _, c := range tt.conditions {
				object.Status.Conditions = append(object.Status.Conditions,
					certificatesv1.CertificateSigningRequestCondition{Type: c, Reason: "Policy", Message: "not now"})
			}
			approved, err := isApproved(object)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), "CertificateSigningRequest/r") ||
					!strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil || approved != tt.approved {
				t.Errorf("approved %v, %v", approved, err)
			}
		})
	}
}

func TestARequestThatIsNotSignedHasAHint(t *testing.T) {
	q := &requester{Request: Request{Name: "r", Timeout: time.Minute}}
	for approved, want := range map[bool]string{true: "--cluster-signing-cert-file",
		false: "kubectl certificate approve"} {
		if hints := problem.Hints(q.timedOut(approved)); len(hints) != 1 || !strings.Contains(hints[0], want) {
			t.Errorf("approved %v: hints %q, want %q", approved, hints, want)
		}
	}
}

// requests has one request.
type requests struct {
	certificatesclient.CertificateSigningRequestInterface
	object *certificatesv1.CertificateSigningRequest
}

func (r *requests) Get(
	context.Context, string, metav1.GetOptions,
) (*certificatesv1.CertificateSigningRequest, error) {
	return r.object.DeepCopy(), nil
}

func (r *requests) UpdateApproval(
	_ context.Context, _ string, object *certificatesv1.CertificateSigningRequest, _ metav1.UpdateOptions,
) (*certificatesv1.CertificateSigningRequest, error) {
	r.object = object
	return object, nil
}

// Another user who may create and delete requests, but not approve them, must not get a certificate
// through the approval of this one.
func TestOnlyTheCreatedRequestIsApproved(t *testing.T) {
	created := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: []byte("own"), SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	for name, swap := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"unchanged":       nil,
		"another object":  func(r *certificatesv1.CertificateSigningRequest) { r.UID = "2" },
		"another request": func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = []byte("other") },
		"another signer": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeletServingSignerName
		},
		"another usage": func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		},
	} {
		t.Run(name, func(t *testing.T) {
			current := created.DeepCopy()
			if swap != nil {
				swap(current)
			}
			kept := &requests{object: current}
			q := &requester{Request: Request{Name: "r"}, client: kept, retry: &kubeapi.Retrier{}, created: created}
			err := q.approve(t.Context())
			conditions := kept.object.Status.Conditions
			if approved := len(conditions) > 0; approved != (swap == nil) || approved != (err == nil) {
				t.Errorf("conditions %v, error %v", conditions, err)
			}
			if err != nil && !strings.Contains(err.Error(), "is not the request that was created") {
				t.Errorf("error %v", err)
			}
		})
	}
}
