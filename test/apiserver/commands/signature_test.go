//go:build linux

package commands

import (
	"context"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/toyimage"
)

// The required key decides which images are deployed, until the user lifts the requirement. Nothing
// changes when an image is refused.
func TestRequiredSignature(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	dir := t.TempDir()
	run.KeyPair(t, dir, "mine")
	run.KeyPair(t, dir, "other")
	mine, other := filepath.Join(dir, "mine.pub"), filepath.Join(dir, "other.pub")
	repository := toyimage.Registry(t) + "/kube-scheduler:"
	signed, unsigned := repository+"signed", repository+"unsigned"
	toyimage.Push(t, unsigned, "", nil)
	digest := toyimage.Push(t, signed, filepath.Join(dir, "mine.pem"), nil)
	playController(t, "signed")
	const refusal = "has no signature of the key"
	// The former patch of the cluster's release makes an upgrade due.
	deploy := func(args ...string) run.Result {
		return pmkSched(append([]string{"deploy", "--name", "signed", "--credentials", "serviceaccount", "--branch", "v1.24.2",
			"--replicas", "1", "--stable-for", "100ms", "--image"}, args...)...)
	}
	refused := func(name string, command func() run.Result, texts ...string) {
		t.Helper()
		before := resourceVersions(t)
		r := command()
		if r.Code == 0 || r.Code == 2 {
			t.Errorf("%s: %s", name, r)
		}
		r.Prints(t, texts...)
		if after := resourceVersions(t); !maps.Equal(before, after) {
			t.Errorf("%s: objects were changed:\n%v\n%v", name, before, after)
		}
	}

	refused("another key", func() run.Result { return deploy(signed, "--require-signature", other) }, refusal,
		"is not signed by the key")
	if left := resourceVersions(t); len(left) > 0 {
		t.Errorf("objects were created: %v", left)
	}
	deploy(signed, "--require-signature", mine).OK(t)
	if got := deployedImage(t, "signed"); got != signed+"@"+digest {
		t.Errorf("the image is %s, want the digest that was verified", got)
	}
	refused("deploy with the recorded key", func() run.Result { return deploy(unsigned) }, refusal, "it has none at all")
	refused("upgrade with the recorded key", func() run.Result {
		return pmkSched("upgrade", "--name", "signed", "--image", unsigned)
	}, refusal, "it has none at all")
	refused("replace", func() run.Result {
		return pmkSched("replace", "--all-nodes", "--yes", "--pod-image", signed, "--image", unsigned,
			"--require-signature", mine)
	}, refusal)

	everyImage(t, pmkSched, refused, signed, unsigned, mine)
	older := repository + "v1.24.2"
	toyimage.Push(t, older, filepath.Join(dir, "mine.pem"), []byte(`{"release":"v1.23.9"}`))
	refused("an older signed image under the tag", func() run.Result { return deploy(older) },
		"has the kube-scheduler of v1.23.9, and the scheduler is for v1.24.2", "specify --branch v1.23.9")

	repair := damageRevision(t, "pmk-sched-signed-revision-1")
	refused("a requirement that cannot be read", func() run.Result { return deploy(unsigned) },
		"read the required signature of signed: read revision of Secret/kube-system/pmk-sched-signed-revision-1",
		"--require-signature none")
	repair()

	deploy(unsigned, "--require-signature", "none").OK(t).Prints(t, "lifts the recorded requirement")
	lifted := deploy(unsigned).OK(t)
	if strings.Contains(lifted.Stderr, "signature") {
		t.Errorf("the requirement is still there: %s", lifted)
	}
}

// everyImage checks that each image that a command would run must be signed, not only the image of
// the scheduler.
func everyImage(t *testing.T, pmkSched func(...string) run.Result, refused func(string, func() run.Result, ...string),
	signed, unsigned, key string) {
	t.Helper()
	const refusal = "has no signature of the key"
	for _, form := range []string{"sidecar: true", "replicas: 1"} {
		file := run.WriteFile(t, "pmk-sched.yaml", "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nspec:\n"+
			"  image: {reference: '"+signed+"'}\n  credentials: serviceaccount\n  source: {branch: v1.24.2}\n"+
			"  extenders: [{name: e, image: '"+unsigned+"', "+form+", ignorable: true, policies: [{name: timestamp}]}]\n")
		refused("deploy with an extender, "+form, func() run.Result {
			return pmkSched("deploy", "--name", "signed", "-f", file)
		}, refusal)
	}
	extender := []string{"extender", "deploy", "--name", "e", "--image", unsigned, "--policy", "timestamp",
		"--ignorable=true", "--for", "signed"}
	refused("extender deploy", func() run.Result { return pmkSched(extender...) }, refusal)
	refused("extender deploy --sidecar", func() run.Result { return pmkSched(append(extender, "--sidecar")...) },
		refusal)
	refused("replace with other pods", func() run.Result {
		return pmkSched("replace", "--all-nodes", "--yes", "--pod-image", unsigned, "--image", signed,
			"--require-signature", key)
	}, refusal)
	refused("restore with other pods", func() run.Result {
		return pmkSched("restore", "--all-nodes", "--yes", "--pod-image", unsigned, "--require-signature", key)
	}, refusal)
}

func deployedImage(t *testing.T, name string) string {
	t.Helper()
	d, err := server.Client(t).AppsV1().Deployments(metav1.NamespaceSystem).Get(run.Context(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// damageRevision cuts the data of a revision, and returns a function that restores it.
func damageRevision(t *testing.T, secret string) (repair func()) {
	t.Helper()
	secrets := server.Client(t).CoreV1().Secrets(metav1.NamespaceSystem)
	write := func(change func(map[string][]byte)) {
		s, err := secrets.Get(run.Context(t), secret, metav1.GetOptions{})
		if err == nil {
			change(s.Data)
			_, err = secrets.Update(run.Context(t), s, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := map[string][]byte{}
	write(func(data map[string][]byte) {
		for key, value := range data {
			whole[key], data[key] = value, value[:len(value)/2]
		}
	})
	return func() { write(func(data map[string][]byte) { maps.Copy(data, whole) }) }
}

// playController does the work of the deployment controller for a Deployment of kube-system until
// the test ends: each change is rolled out at once.
func playController(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(run.Context(t))
	deployments := server.Client(t).AppsV1().Deployments(metav1.NamespaceSystem)
	changes, err := deployments.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range changes.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok || d.Status.ObservedGeneration == d.Generation {
				continue
			}
			replicas := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas,
				AvailableReplicas: replicas,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			if _, err := deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil &&
				!apierrors.IsConflict(err) { // the change that follows is rolled out
				t.Errorf("roll out %s: %v", name, err)
			}
		}
	}()
	t.Cleanup(func() {
		changes.Stop()
		<-done
		cancel()
	})
}

func TestDeployRefusesAnImageThatItsRegistryDoesNotHave(t *testing.T) {
	pmkSched := kubeadmCluster(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	for _, command := range []string{"deploy", "check"} {
		r := pmkSched(command, "--name", "missing", "--credentials", "serviceaccount", "--image", host+"/none:v1")
		if r.Code == 0 || r.Code == 2 {
			t.Error(r)
		}
		r.Prints(t, "image "+host+"/none:v1 is ", "in registry "+host, "push the image")
	}
	if left := resourceVersions(t); len(left) > 0 {
		t.Errorf("objects were created: %v", left)
	}
}
