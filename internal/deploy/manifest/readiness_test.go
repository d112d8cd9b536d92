package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// A standby that fills its caches only when it leads is never ready for the readiness check of 1.31
// and later.
func TestReadinessWithDelayCacheUntilActive(t *testing.T) {
	const delayed = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"delayCacheUntilActive: true\n"
	for _, c := range []struct {
		name, release, source string
		replicas              int32
		want                  string
	}{
		{"before /readyz", "v1.29.2", delayed, 3, "/healthz"},
		{"one replica leads", "v1.31.0", delayed, 1, "/readyz"},
		{"standbys", "v1.31.0", delayed, 3, "/readyz?exclude=sched-handler-sync"},
		{"standbys of the newest", "v1.37.1", delayed, 2, "/readyz?exclude=sched-handler-sync"},
		{"standbys with caches", "v1.31.0", "", 3, "/readyz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scheduler(t, c.release, manifest.ModeNode)
			if c.source != "" {
				rendered, err := profiles.Render(profiles.Request{
					Release: s.Release, SchedulerName: s.Name, Kubeconfig: manifest.KubeconfigPath(s.Name), Source: []byte(c.source),
					LeaderElect: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				s.Configuration = rendered
			}
			s.Replicas = c.replicas
			got := field(t, deployment(t, s), "spec", "template", "spec", "containers", 0, "readinessProbe", "httpGet", "path")
			if got != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestTolerationsOfTaints(t *testing.T) {
	exists := func(keys ...string) []corev1.Toleration {
		var list []corev1.Toleration
		for _, key := range keys {
			list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		return list
	}
	const master, plane, etcd, critical = "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane",
		"node-role.kubernetes.io/etcd", "CriticalAddonsOnly"
	spare := corev1.Toleration{Key: "spare", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name   string
		taints []string
		others []corev1.Toleration
		want   []corev1.Toleration
	}{
		{"none", nil, nil, exists(master, plane, critical)},
		{"RKE2", []string{plane, etcd}, nil, exists(master, plane, critical, etcd)},
		{"k3s", []string{critical}, nil, exists(master, plane, critical)},
		{"of two nodes", []string{"spare", "dedicated", "spare", master}, nil,
			exists(master, plane, critical, "dedicated", "spare")},
		{"of the user", []string{"dedicated"}, []corev1.Toleration{spare, spare, exists(master)[0]},
			append(exists(master, plane, critical, "dedicated"), spare)},
	} {
		if diff := cmp.Diff(c.want, manifest.Tolerations(c.taints, c.others)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
