package loadaware

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// The bounds of a field are valid, and the next numbers are not.
func TestBoundsOfArguments(t *testing.T) {
	metric := `{"prometheus": {"url": "http://p"}, "metrics": [{"name": "cpu", %s}, {"name": "memory"}]}`
	prometheus := `{"prometheus": {"url": "http://p", %s}}`
	load := `{"prometheus": {"url": "http://p"}, "expectedLoad": {%s}}`
	cases := map[string]struct {
		format         string
		valid, invalid []string
		field          string
	}{
		"weight":     {metric, []string{`"weight": 0`, `"weight": 100`}, []string{`"weight": 101`}, "metrics[0].weight"},
		"maxPercent": {metric, []string{`"maxPercent": 1000`}, []string{`"maxPercent": 1001`}, "metrics[0].maxPercent"},
		"podPercent": {metric, []string{`"query": "q", "podPercent": 100`}, []string{`"query": "q", "podPercent": 101`},
			"metrics[0].podPercent"},
		"maxBytes": {prometheus, []string{`"maxBytes": 1024`, `"maxBytes": 1073741824`},
			[]string{`"maxBytes": 1023`, `"maxBytes": 1073741825`}, "prometheus.maxBytes"},
		"cpu":    {load, []string{`"cpu": "0"`, `"cpu": "1m"`}, []string{`"cpu": "-1m"`}, "expectedLoad.cpu"},
		"memory": {load, []string{`"memory": "0"`}, []string{`"memory": "-1"`, `"memory": "much"`}, "expectedLoad.memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, fields := range tc.valid {
				if _, err := Rules(scheduler.NewArguments(fmt.Appendf(nil, tc.format, fields))); err != nil {
					t.Errorf("%s: %v", fields, err)
				}
			}
			for _, fields := range tc.invalid {
				_, err := Rules(scheduler.NewArguments(fmt.Appendf(nil, tc.format, fields)))
				if err == nil || !strings.Contains(err.Error(), tc.field) {
					t.Errorf("%s: got %v, want %s", fields, err, tc.field)
				}
			}
		})
	}
}

// A token is sent unencrypted only to this host.
func TestTokensAreSentUnencryptedToThisHostOnly(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "[::1]": true, "10.0.0.1": false,
		"prometheus": false} {
		args := fmt.Sprintf(`{"prometheus": {"url": "http://%s:9090", "bearerTokenFile": "/t"}}`, host)
		if _, err := Rules(scheduler.NewArguments([]byte(args))); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestFieldsThatNeedHTTPS(t *testing.T) {
	for _, field := range []string{`"caFile": "/f"`, `"ca": "x"`, `"serverName": "q"`, `"insecureSkipVerify": true`,
		`"certFile": "/f", "keyFile": "/f"`, `"certFile": "/f"`, `"keyFile": "/f"`} {
		_, err := Rules(scheduler.NewArguments([]byte(`{"prometheus": {"url": "http://p", ` + field + `}}`)))
		if err == nil || !strings.Contains(err.Error(), "need an https URL") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, url := range []string{"https:///path", "ftp://p", "http://p:x", "p"} {
		_, err := Rules(scheduler.NewArguments([]byte(`{"prometheus": {"url": "` + url + `"}}`)))
		if err == nil || !strings.Contains(err.Error(), "must be an http or https URL with a host") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
