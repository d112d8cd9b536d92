package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

func TestOtherCredentialsGiveTheObjectsOfANewRendering(t *testing.T) {
	for _, mode := range []string{manifest.ModeNode, manifest.ModeNodeInline} {
		t.Run(mode, func(t *testing.T) {
			before := scheduler(t, "v1.24.3", mode)
			after := before
			after.Credentials.CA, after.Credentials.Cert = []byte("new ca\n"), []byte("new certificate\n")
			got, err := manifest.WithCredentials(objects(t, before), after.Credentials)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(objects(t, after), got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherCredentialsNeedWhatMountsThem(t *testing.T) {
	all := objects(t, scheduler(t, "v1.24.3", manifest.ModeNode))
	without := func(kind string) []*unstructured.Unstructured {
		return slices.DeleteFunc(slices.Clone(all), func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	}
	for name, tt := range map[string]struct {
		objects []*unstructured.Unstructured
		mode    string
		want    string
	}{
		"no Secret":              {without("Secret"), manifest.ModeNode, "Secret/my-scheduler-credentials-"},
		"no Deployment":          {without("Deployment"), manifest.ModeNode, "no Deployment"},
		"no volume":              {objects(t, scheduler(t, "v1.24.3", manifest.ModeServiceAccount)), manifest.ModeNode, "has no volume credentials"},
		"the file of the node":   {objects(t, scheduler(t, "v1.24.3", manifest.ModeHostPath)), manifest.ModeNodeInline, "volume kubeconfig-file of Deployment/my-scheduler is neither"},
		"nothing to be replaced": {all, manifest.ModeHostPath, "credentials hostpath have no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.WithCredentials(tt.objects, credentials(tt.mode))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
