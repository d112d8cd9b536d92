package ask

import (
	"fmt"
	"strings"
	"testing"
)

func TestDecisionsThatGiveADeviceTwiceDoNotCount(t *testing.T) {
	write := func(claim, device, more string) (path, body string) {
		return "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/" + claim + "/status", fmt.Sprintf(
			`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":%q,"namespace":"n"},"status":`+
				`{"allocation":{"devices":{"results":[{"driver":"d","pool":"p","device":%q%s}]}}}}`, claim, device, more)
	}
	for name, tc := range map[string]struct {
		claim, device, more string
		want                string
	}{
		"another device":   {claim: "b", device: "second"},
		"the same claim":   {claim: "a", device: "first"},
		"the same device":  {claim: "b", device: "first", want: "gave two claims the device d/p/first"},
		"an administrator": {claim: "b", device: "first", more: `,"adminAccess":true`},
		"a shared device":  {claim: "b", device: "first", more: `,"shareID":"0d5e4a3c-0000-4000-8000-000000000000"`},
	} {
		t.Run(name, func(t *testing.T) {
			v := &view{asked: newAsked(nil)}
			path, body := write("a", "first", "")
			v.noteDevices(path, []byte(body))
			path, body = write(tc.claim, tc.device, tc.more)
			v.noteDevices(path, []byte(body))
			if got := v.asked.disturbed; (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
