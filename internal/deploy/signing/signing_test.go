package signing

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
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
