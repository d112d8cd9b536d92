package report_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

// devices decodes slices and claims.
func devices(t *testing.T, all, claims []string) *report.Devices {
	t.Helper()
	d := &report.Devices{}
	for _, text := range all {
		s := &report.ResourceSlice{}
		if err := json.Unmarshal([]byte(`{"spec":`+text+`}`), s); err != nil {
			t.Fatal(err)
		}
		d.AddSlice(s)
	}
	for _, text := range claims {
		c := &report.ResourceClaim{}
		if err := json.Unmarshal([]byte(`{"status":{"allocation":{"devices":{"results":[`+text+`]}}}}`), c); err != nil {
			t.Fatal(err)
		}
		d.AddClaim(c)
	}
	return d
}

func TestDevicesAreCounted(t *testing.T) {
	pool := func(node string, generation int, devices string) string {
		return fmt.Sprintf(`{"driver":"gpu","nodeName":"%s","pool":{"name":"p","generation":%d},"devices":[%s]}`, node, generation,
			devices)
	}
	const (
		counters = `"consumesCounters":[{"counterSet":"c","counters":{"memory":{"value":"%s"}}}]`
		shared   = `{"driver":"gpu","pool":{"name":"p","generation":1},"sharedCounters":[{"name":"c","counters":{"memory":{"value":"40Gi"}}}]}`
		claim    = `{"driver":"gpu","pool":"p","device":"%s"}`
	)
	partitions := pool("n", 1, `{"name":"whole",`+fmt.Sprintf(counters, "40Gi")+`},{"name":"half-0",`+
		fmt.Sprintf(counters, "20Gi")+`},{"name":"half-1",`+fmt.Sprintf(counters, "20Gi")+`}`)
	for name, tc := range map[string]struct {
		slices, claims []string
		want           string // node: devices, allocated, free
	}{
		"none allocated": {[]string{pool("n", 1, `{"name":"a"},{"name":"b"}`)}, nil, "n 2 0 2;"},
		"one allocated": {[]string{pool("n", 1, `{"name":"a"},{"name":"b"}`)}, []string{fmt.Sprintf(claim, "a")},
			"n 2 1 1;"},
		"two claims, several devices": {[]string{pool("n", 1, `{"name":"a"},{"name":"b"},{"name":"c"}`)},
			[]string{fmt.Sprintf(claim, "a"), fmt.Sprintf(claim, "b") + "," + fmt.Sprintf(claim, "c")}, "n 3 3 0;"},
		"administrative access": {[]string{pool("n", 1, `{"name":"a"}`)},
			[]string{`{"driver":"gpu","pool":"p","device":"a","adminAccess":true}`}, "n 1 0 1;"},
		"of v1beta1": {[]string{pool("n", 1, `{"name":"a","basic":{"taints":[{"effect":"NoExecute"}]}},{"name":"b","basic":{}}`)},
			nil, "n 2 0 1;"},
		"an old generation": {[]string{pool("n", 1, `{"name":"a"},{"name":"b"}`), pool("n", 2, `{"name":"a"}`)}, nil, "n 1 0 1;"},
		"several nodes":     {[]string{pool("", 1, `{"name":"a","nodeName":"m"},{"name":"b"}`)}, nil, " 1 0 1;m 1 0 1;"},
		"tainted": {[]string{pool("n", 1, `{"name":"a","taints":[{"effect":"NoSchedule"}]},{"name":"b","taints":[{"effect":"None"}]}`)},
			nil, "n 2 0 1;"},
		"partitions, none allocated": {[]string{shared, partitions}, nil, "n 3 0 3;"},
		"partitions, a half":         {[]string{shared, partitions}, []string{fmt.Sprintf(claim, "half-1")}, "n 3 1 1;"},
		"partitions, the whole":      {[]string{shared, partitions}, []string{fmt.Sprintf(claim, "whole")}, "n 3 1 0;"},
		"the pool of another driver": {[]string{pool("n", 1, `{"name":"a"}`)},
			[]string{`{"driver":"other","pool":"p","device":"a"}`, `{"driver":"gpu","pool":"q","device":"a"}`}, "n 1 0 1;"},
		"after administrative access": {[]string{pool("n", 1, `{"name":"a"},{"name":"b"}`)},
			[]string{`{"driver":"gpu","pool":"p","device":"a","adminAccess":true},` + fmt.Sprintf(claim, "b")}, "n 2 1 1;"},
		"an old generation of another pool": {[]string{pool("n", 1, `{"name":"a"}`),
			`{"driver":"gpu","nodeName":"n","pool":{"name":"q","generation":2},"devices":[{"name":"a"}]}`}, nil, "n 1 0 1;n 1 0 1;"},
		"counters that are exactly enough": {[]string{shared, pool("n", 1, `{"name":"a",`+fmt.Sprintf(counters, "15Gi")+
			`},{"name":"b",`+fmt.Sprintf(counters, "25Gi")+`},{"name":"c",`+fmt.Sprintf(counters, "26Gi")+`}`)},
			[]string{fmt.Sprintf(claim, "a")}, "n 3 1 1;"},
		"counters that the pool does not have": {[]string{shared, pool("n", 1,
			`{"name":"a","consumesCounters":[{"counterSet":"c","counters":{"cores":{"value":"1"}}}]},{"name":"b",`+
				fmt.Sprintf(counters, "40Gi")+`}`)}, []string{fmt.Sprintf(claim, "a")}, "n 2 1 1;"},
		"counters of a free device that the pool does not have": {[]string{shared, pool("n", 1,
			`{"name":"a","consumesCounters":[{"counterSet":"d","counters":{"cores":{"value":"1"}}}]}`)}, nil, "n 1 0 0;"},
		"a claim without a slice": {nil, []string{fmt.Sprintf(claim, "a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, p := range report.CompareDevices(&report.Devices{}, devices(t, tc.slices, tc.claims)) {
				got += fmt.Sprintf("%s %d %d %d;", p.Node, p.After.Devices, p.After.Allocated, p.After.Free)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A device that several claims can share has one row of its pool, before and after.
func TestSharesOfADeviceAreAddedUp(t *testing.T) {
	const share = `{"driver":"nic","pool":"p","device":"a","consumedCapacity":{"bandwidth":"%s"}}`
	slices := []string{`{"driver":"nic","nodeName":"n","pool":{"name":"p","generation":1},"devices":[{"name":"a",
		"allowMultipleAllocations":true,"capacity":{"bandwidth":{"value":"10Gi"}}}]}`}
	before := devices(t, slices, []string{fmt.Sprintf(share, "2Gi")})
	after := devices(t, slices, []string{fmt.Sprintf(share, "2Gi"), fmt.Sprintf(share, "3Gi")})
	got := report.CompareDevices(before, after)
	if len(got) != 1 || got[0].Before.Allocated != 1 || got[0].After.Allocated != 1 {
		t.Fatalf("got %+v", got)
	}
	was, is := got[0].Before.Capacity["bandwidth"], got[0].After.Capacity["bandwidth"]
	if was.Consumed.String() != "2Gi" || is.Consumed.String() != "5Gi" || is.Total.String() != "10Gi" {
		t.Errorf("got %v and %v", was, is)
	}
}

// Pools are ordered by driver, pool and node, also if one of the states does not have them.
func TestPoolsBeforeAndAfter(t *testing.T) {
	pool := func(driver, pool, node string) string {
		return fmt.Sprintf(`{"driver":"%s","nodeName":"%s","pool":{"name":"%s"},"devices":[{"name":"a"}]}`, driver, node, pool)
	}
	before := devices(t, []string{pool("b", "x", "n"), pool("a", "y", "n")},
		[]string{`{"driver":"b","pool":"x","device":"a"}`})
	before.AddClaim(&report.ResourceClaim{}) // not allocated
	after := devices(t, []string{pool("a", "x", "n"), pool("a", "x", "m"), pool("a", "y", "n")}, nil)
	free, used := report.DeviceCount{Devices: 1, Free: 1}, report.DeviceCount{Devices: 1, Allocated: 1}
	want := []report.DevicePool{
		{Driver: "a", Pool: "x", Node: "m", After: free}, {Driver: "a", Pool: "x", Node: "n", After: free},
		{Driver: "a", Pool: "y", Node: "n", Before: free, After: free}, {Driver: "b", Pool: "x", Node: "n", Before: used},
	}
	if diff := cmp.Diff(want, report.CompareDevices(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSharedCapacityOfAPool(t *testing.T) {
	device := func(name string) string {
		return `{"name":"` + name + `","allowMultipleAllocations":true,` +
			`"capacity":{"slots":{"value":"4"},"bandwidth":{"value":"10Gi"}}}`
	}
	slices := []string{`{"driver":"nic","nodeName":"n","pool":{"name":"p"},"devices":[` + device("a") + `,` + device("b") +
		`,{"name":"c","capacity":{"slots":{"value":"4"}}}]}`}
	share := func(device string) string {
		return `{"driver":"nic","pool":"p","device":"` + device + `","consumedCapacity":{"bandwidth":"2Gi","slots":"1"}}`
	}
	got := report.CompareDevices(devices(t, slices, nil),
		devices(t, slices, []string{share("a"), share("b") + "," + share("a")}))
	if want := "bandwidth 0 → 6Gi of 20Gi, slots 0 → 3 of 8"; len(got) != 1 || got[0].SharedCapacity() != want {
		t.Errorf("got %+v, want %s", got, want)
	}
	if text := (report.DevicePool{}).SharedCapacity(); text != "" {
		t.Errorf("without shared devices: %q", text)
	}
}
