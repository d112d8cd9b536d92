package deploy

import (
	"slices"
	"strings"
	"testing"
)

func TestTheBindingInKubeSystemIsLeftOutWhereItIsRefused(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		wanted  *bool
		closed  string
		without bool
		warns   bool
	}{
		"open":                  {},
		"closed":                {closed: "the namespace is managed", without: true, warns: true},
		"left out by the user":  {wanted: &no, without: true},
		"required by the user":  {wanted: &yes, closed: "the namespace is managed"},
		"left out where closed": {wanted: &no, closed: "the namespace is managed", without: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "a", Namespace: "sched", Facts: Facts{Image: "registry.example/a:v1", Branch: "v1.29.3",
				SystemClosed: tc.closed}}
			o.Spec.Credentials, o.Spec.RBAC.AuthenticationReader = CredentialsServiceAccount, tc.wanted
			plan, err := o.Plan()
			if err != nil {
				t.Fatal(err)
			}
			var inSystem []string
			for _, o := range plan.Objects {
				if o.GetNamespace() == "kube-system" {
					inSystem = append(inSystem, objectName(o))
				}
			}
			want := []string{"RoleBinding/kube-system/a-extension-apiserver-authentication-reader"}
			if tc.without {
				want = nil
			}
			if !slices.Equal(inSystem, want) {
				t.Errorf("objects in kube-system: %q, want %q", inSystem, want)
			}
			warned := slices.ContainsFunc(plan.Warnings,
				func(w string) bool { return strings.Contains(w, "the namespace is managed") })
			if warned != tc.warns {
				t.Errorf("warnings %q", plan.Warnings)
			}
		})
	}
}
