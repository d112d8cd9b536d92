package scenario_test

import (
	"strings"
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
		"of a pod without a node": {moved: []string{pod("", uses)}, claim: claim},
		"of a finished pod": {moved: []string{strings.Replace(pod("a", uses), `"spec"`,
			`"status":{"phase":"Succeeded"},"spec"`, 1)}, claim: claim},
		"of a pod that moves, and a finished one": {moved: []string{pod("a", uses)}, claim: claim, want: true,
			stays: []string{strings.Replace(pod("a", uses), `"spec"`, `"status":{"phase":"Failed"},"spec"`, 1)}},
		"of a claim without a volume": {moved: []string{pod("a", uses)}, claim: `{"metadata":{"name":"c","namespace":"n"}}`},
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
	// The volume knows its claim too; a volume without a claim is of no pod.
	for volume, want := range map[string]bool{
		`{"metadata":{"name":"pv"},"spec":{"claimRef":{"namespace":"n","name":"c"}}}`: true,
		`{"metadata":{"name":"pv"},"spec":{"claimRef":{"namespace":"m","name":"c"}}}`: false,
		`{"metadata":{"name":"pv"},"spec":{}}`:                                        false,
	} {
		a := scenario.NewAttachments()
		a.AddPod(decode(t, pod("a", uses)), false)
		attachment := decode(t, `{"spec":{"nodeName":"a","source":{"persistentVolumeName":"pv"}}}`)
		if a.Removes(kindNamed(t, "PersistentVolume"), decode(t, volume)) {
			t.Error("the volume is removed")
		}
		if got := a.Removes(kindNamed(t, "VolumeAttachment"), attachment); got != want {
			t.Errorf("%s: removed: %t", volume, got)
		}
	}
	inline := decode(t, `{"metadata":{"name":"x"},"spec":{"nodeName":"a","source":{}}}`)
	if !scenario.NewAttachments().Removes(kindNamed(t, "VolumeAttachment"), inline) {
		t.Error("the API server refuses an attachment without a volume")
	}
}
