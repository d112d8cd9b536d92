package customresource

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestQuantitiesThatTakeTooLongAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`"10Mi"`: "10Mi", `"1500m"`: "1500m", `"1E"`: "1E", `"2Ei"`: "2Ei", `"1e3"`: "1e3", `"5e+0003"`: "5e+0003", `4`: "4",
		`0.5`: "500m", `null`: "0", `"1e-999999999"`: "", `"9999999999999999999e99999999"`: "", `"1E1000"`: "",
		`"high"`: "", `""`: "", `true`: "", `"` + strings.Repeat("9", 65) + `"`: "",
	} {
		var q Quantity
		err := json.Unmarshal([]byte(text), &q)
		if (err == nil) != (want != "") || err == nil && q.String() != want {
			t.Errorf("%s: %s, %v; want %q", text, q.String(), err, want)
		}
	}
}
