package scenario_test

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
)

// An attachment goes with the last pod that uses the volume on the node.
func TestAttachmentsGoWithTheirPods(t *testing.T) {
	const claim = `{"metadata":{"name":"c","namespace":"n"},"spec":{"volumeName":"pv"}}`
	pod := func(node, volumes string) string {
		return `{"metadata":{"name":"web","namespace":"n"},"spec":{"nodeName":"` + node + `","volumes":[` + volumes + `]}}`
	}
	const uses = `{"name":"v","persistentVolumeClaim":{"claimName":"c"}}`
	cases := map[string]struct {
		moved, stays []string
		claim        string
		want         bool
	}{
		"of a pod that moves": {moved: []string{pod("a", uses)}, claim: claim, want: true},
		"of a pod that stays": {stays: []string{pod("a", uses)}, claim: claim},
		"of both":             {moved: []string{pod("a", uses)}, stays: []string{pod("a", uses)}, claim: claim},
		"another one stays elsewhere": {moved: []string{pod("a", uses)}, stays: []string{pod("b", uses)}, claim: claim,
			want: true},
		"of no pod":                  {claim: claim},
		"of a pod that moves from b": {moved: []string{pod("b", uses)}, claim: claim},
		"of a pod without volumes":   {moved: []string{pod("a", `{"name":"v","configMap":{}}`)}, claim: claim},
		"of an ephemeral volume": {moved: []string{pod("a", `{"name":"v","ephemeral":{}}`)}, want: true,
			claim: `{"metadata":{"name":"web-v","namespace":"n"},"spec":{"volumeName":"pv"}}`},
		"of a claim in another namespace": {moved: []string{pod("a", uses)},
			claim: `{"metadata":{"name":"c","namespace":"m"},"spec":{"volumeName":"pv"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := scenario.NewAttachments()
			for _, text := range tc.moved {
				a.AddPod(decode(t, text), false)
			}
			for _, text := range tc.stays {
				a.AddPod(decode(t, text), true)
			}
			if a.Removes(kindNamed(t, "PersistentVolumeClaim"), decode(t, tc.claim)) {
				t.Error("the claim is removed")
			}
			attachment := decode(t, `{"metadata":{"name":"x"},"spec":{"nodeName":"a","source":{"persistentVolumeName":"pv"}}}`)
			if got := a.Removes(kindNamed(t, "VolumeAttachment"), attachment); got != tc.want {
				t.Errorf("removed: %t, want %t", got, tc.want)
			}
		})
	}
	inline := decode(t, `{"metadata":{"name":"x"},"spec":{"nodeName":"a","source":{}}}`)
	if !scenario.NewAttachments().Removes(kindNamed(t, "VolumeAttachment"), inline) {
		t.Error("the API server refuses an attachment without a volume")
	}
}
