package deploy

import (
	"strings"
	"testing"
)

func TestMonitoringIsForThePodsOfThePlan(t *testing.T) {
	for name, tt := range map[string]struct {
		change           func(*PlanInput)
		contains, lacks  []string
		warning          string
		withoutNodeFiles bool
	}{
		"on a node": {
			change: func(*PlanInput) {},
			contains: []string{"namespace: kube-system", "app.kubernetes.io/name: kube-scheduler", "targetPort: https",
				"SchedulerCertificateExpiresSoon"},
		},
		"another namespace": {
			change:   func(o *PlanInput) { o.Namespace = "scheduling" },
			contains: []string{"namespace: scheduling", `namespace="scheduling"`},
			lacks:    []string{"kube-system"},
		},
		"a token": {
			change: func(*PlanInput) {}, withoutNodeFiles: true,
			lacks: []string{"SchedulerCertificateExpiresSoon"},
		},
		"metrics on loopback": {
			change: func(o *PlanInput) {
				o.Spec.Configuration.Inline =
					"apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\nmetricsBindAddress: " +
						"127.0.0.1:10251\nhealthzBindAddress: 127.0.0.1:10251\n"
			},
			warning: "serves metrics on 127.0.0.1 only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials(),
				Image: "localhost/s:v1", Now: now}}
			tt.change(&o)
			if tt.withoutNodeFiles {
				o.Node = nil
			}
			plan, err := o.Plan()
			if err != nil {
				t.Fatal(err)
			}
			text, warnings, err := RenderMonitoring(plan)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range tt.contains {
				if !strings.Contains(string(text), part) {
					t.Errorf("the objects lack %q", part)
				}
			}
			for _, part := range tt.lacks {
				if strings.Contains(string(text), part) {
					t.Errorf("the objects have %q", part)
				}
			}
			if got := strings.Join(warnings, "\n"); !strings.Contains(got, tt.warning) || tt.warning == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
		})
	}
}
