package deploy

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

const nodeConf = "/etc/kubernetes/scheduler.conf"

// issuer signs the certificates of a test.
func issuer(t *testing.T) *certificates.Authority {
	t.Helper()
	authority, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(10, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// signed returns a certificate of a user.
func signed(t *testing.T, authority *certificates.Authority, user string, notBefore, notAfter time.Time) Successor {
	t.Helper()
	pair, err := authority.Sign(x509.Certificate{Subject: pkix.Name{CommonName: user}, NotBefore: notBefore,
		NotAfter: notAfter})
	if err != nil {
		t.Fatal(err)
	}
	return Successor{CA: authority.Cert, Cert: pair.Cert, Key: pair.Key, Origin: nodeConf}
}

// withCertificate returns a deployed revision of a scheduler on a node.
func withCertificate(t *testing.T, mode string, c Successor, info *inspect.Info) *apply.Revision {
	t.Helper()
	creds := nodeCredentials()
	creds.CA, creds.Cert, creds.Key = c.CA, c.Cert, c.Key
	o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: info, Node: creds, Image: "localhost/s:v1", Now: now}}
	o.Spec.Credentials = mode
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return revisionOf(t, 3, plan)
}

// changed returns the kinds of the objects that differ between two lists, which are in the same
// order.
func changed(before, after []*unstructured.Unstructured) (kinds []string) {
	for i, o := range after {
		if !SameObjects([]*unstructured.Unstructured{before[i]}, []*unstructured.Unstructured{o}) {
			kinds = append(kinds, o.GetKind())
		}
	}
	return kinds
}

func TestRefreshReplacesTheCertificateOnly(t *testing.T) {
	authority := issuer(t)
	old := signed(t, authority, "system:kube-scheduler", now.AddDate(-1, 0, 0), now.AddDate(0, 0, 7))
	fresh := signed(t, authority, "system:kube-scheduler", now.Add(-time.Minute), now.AddDate(1, 0, 0))
	for mode, kinds := range map[string][]string{CredentialsNode: {"Secret", "Deployment"},
		CredentialsNodeInline: {"ConfigMap", "Deployment"}} {
		t.Run(mode, func(t *testing.T) {
			revision := withCertificate(t, mode, old, masterInfo("v1.24.3"))
			untouched := fmt.Sprint(revision.Objects)
			plan, err := PlanRefresh(revision, fresh, now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(kinds, changed(revision.Objects, plan.Objects)); diff != "" {
				t.Errorf("changed objects (-want +got):\n%s", diff)
			}
			if fmt.Sprint(revision.Objects) != untouched {
				t.Error("the revision was changed")
			}
			// A deployment of the same scheduler applies the same objects.
			same := withCertificate(t, mode, fresh, masterInfo("v1.24.3"))
			if !SameObjects(same.Objects, plan.Objects) {
				t.Errorf("the objects differ from those of a deployment: %v", changed(same.Objects, plan.Objects))
			}
			if plan.Origin != "credentials refresh: "+nodeConf || plan.Replaces != 3 ||
				plan.Description() != revision.Description {
				t.Errorf("origin %q in place of %d: %q", plan.Origin, plan.Replaces, plan.Description())
			}
			report, err := DescribeCredentials(plan.Objects, "kube-system", "my-scheduler", nil)
			if err != nil || !report.Expires.Equal(now.AddDate(1, 0, 0)) {
				t.Errorf("credentials %+v, %v", report, err)
			}
		})
	}
}

func TestRefreshNotesWhenPodsHaveToWait(t *testing.T) {
	authority := issuer(t)
	old := signed(t, authority, "system:kube-scheduler", now.AddDate(-1, 0, 0), now.AddDate(0, 0, 7))
	fresh := signed(t, authority, "system:kube-scheduler", now, now.AddDate(1, 0, 0))
	two := masterInfo("v1.24.3")
	two.ControlPlane.Count = 2
	two.ControlPlane.Nodes = append(two.ControlPlane.Nodes, inspect.ControlPlaneNode{Name: "other", Ready: true})
	for want, info := range map[string]*inspect.Info{"one replica on the host network": masterInfo("v1.24.3"), "": two} {
		plan, err := PlanRefresh(withCertificate(t, CredentialsNode, old, info), fresh, now)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, want) || want == "" && notes != "" {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
}

func TestRefreshRefusesWhatIsNotNewer(t *testing.T) {
	authority := issuer(t)
	old := signed(t, authority, "system:kube-scheduler", now.AddDate(0, -1, 0), now.AddDate(0, 1, 0))
	sign := func(user string, from, to time.Time) Successor {
		return signed(t, authority, user, from, to)
	}
	for name, tt := range map[string]struct {
		fresh Successor
		want  string
	}{
		"older": {sign("system:kube-scheduler", now.AddDate(-1, 0, 0), now.AddDate(0, 0, 7)),
			"is older than the one in use: it expires on 2026-05-08T12:00:00Z, the one in use on 2026-06-01T12:00:00Z"},
		"expired": {sign("system:kube-scheduler", now.AddDate(-1, 0, 0), now.AddDate(0, 0, -1)),
			"expired on 2026-04-30T12:00:00Z"},
		"not yet": {sign("system:kube-scheduler", now.AddDate(0, 0, 1), now.AddDate(1, 0, 0)),
			"is valid only from 2026-05-02T12:00:00Z"},
		"another user": {sign("system:admin", now, now.AddDate(1, 0, 0)),
			"is of user system:admin, and the permissions are granted to system:kube-scheduler"},
		"no PEM": {Successor{CA: authority.Cert, Cert: []byte("x"), Key: []byte("KEY")}, "not PEM"},
		"no key": {Successor{CA: authority.Cert, Cert: sign("system:kube-scheduler", now, now.AddDate(1, 0, 0)).Cert},
			"have no client key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := PlanRefresh(withCertificate(t, CredentialsNode, old, masterInfo("v1.24.3")), tt.fresh, now)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "KEY") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	requested := sign("system:kube-scheduler", now, now.AddDate(0, 0, 7))
	requested.Requested = true
	if _, err := PlanRefresh(withCertificate(t, CredentialsNode, old, masterInfo("v1.24.3")), requested, now); err != nil {
		t.Errorf("a requested certificate of a week: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", requested, requested, requested); strings.Contains(text, "PRIVATE") ||
		strings.Contains(text, "45, 45") {
		t.Errorf("the key is printed: %s", text)
	}
	for _, mode := range []string{CredentialsNode, CredentialsNodeInline} {
		if _, err := PlanRefresh(withCertificate(t, mode, old, masterInfo("v1.24.3")), old, now); !errors.Is(err,
			ErrSameCertificate) {
			t.Errorf("the same certificate, %s: %v", mode, err)
		}
	}
}

func TestRefreshNeedsAReadableRevision(t *testing.T) {
	one := revision(t, 1, "v1.24.3", nil)
	for want, current := range map[string]*apply.Revision{
		"has no deployed revision":              nil,
		"revision 2 of my-scheduler is damaged": damaged(revision(t, 2, "v1.24.3", nil)),
	} {
		if err := CheckCurrent(current, "kube-system", "my-scheduler"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := CheckCurrent(one, "kube-system", "my-scheduler"); err != nil {
		t.Error(err)
	}
	without := revision(t, 1, "v1.24.3", nil)
	without.Record = nil
	if _, _, err := ReadCertificate(without); err == nil ||
		!strings.Contains(err.Error(), "does not record how it was deployed") {
		t.Errorf("error %v", err)
	}
}

// running returns a pod of a scheduler whose container started some time ago.
func running(ago time.Duration, volumes ...corev1.Volume) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "s-1"}, Spec: corev1.PodSpec{NodeName: "node-1", Volumes: volumes},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "extender-x", State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}},
			{Name: manifest.ContainerName, State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}}},
		}},
	}
}

func TestRenewalOfTokensIsReadFromThePods(t *testing.T) {
	token := func(seconds *int64) corev1.Volume {
		return corev1.Volume{Name: "kube-api-access-x",
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: seconds}},
			}}}}
	}
	hour := int64(3607)
	pending := running(0, token(&hour))
	pending.Status = corev1.PodStatus{}
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"renewed": {running(26*time.Hour, token(&hour)),
			"pod s-1: the kubelet requests a token for 1h0m7s and has renewed it: the container has been running for 26h0m0s"},
		"not renewed yet": {running(time.Minute, token(&hour)),
			"pod s-1: the kubelet requests a token for 1h0m7s and renews it before it expires"},
		"not running": {pending, "pod s-1: the kubelet requests a token for 1h0m7s and renews it before it expires"},
		"default life": {running(2*time.Hour, token(nil)),
			"pod s-1: the kubelet requests a token for 1h0m0s and has renewed it: the container has been running for 2h0m0s"},
		"a Secret of 1.20": {running(time.Hour,
			corev1.Volume{Name: "s-token-x",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s-token-x"}}}),
			"pod s-1: the cluster mounts a token that does not expire"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DescribeTokens([]corev1.Pod{tt.pod}, now); len(got) != 1 || got[0] != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRenewalOfAFileIsReadFromTheFileAndThePods(t *testing.T) {
	pods := []corev1.Pod{running(time.Hour), {ObjectMeta: metav1.ObjectMeta{Name: "pending"}}}
	started := "pod s-1 read the file of node node-1 when its container started, on 2026-05-01T11:00:00Z"
	if diff := cmp.Diff([]string{started}, DescribeFile(pods, nil)); diff != "" {
		t.Errorf("elsewhere (-want +got):\n%s", diff)
	}
	creds := nodeCredentials()
	file := &NodeFile{NodeCredentials: creds, Written: now.Add(-24 * time.Hour)}
	want := []string{creds.Path +
		" of this node was written on 2026-04-30T12:00:00Z; its certificate expires on 2027-05-01T12:00:00Z", started}
	if diff := cmp.Diff(want, DescribeFile(pods, file)); diff != "" {
		t.Errorf("on the node (-want +got):\n%s", diff)
	}
}
