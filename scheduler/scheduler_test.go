package scheduler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

type arguments struct {
	Name   string         `json:"name"`
	Limits map[string]int `json:"limits"`
	Inner  struct {
		Value float64 `json:"value"`
	} `json:"inner"`
	List []struct {
		Key string `json:"key"`
	} `json:"list"`
}

func TestArgumentsAreDecodedStrictly(t *testing.T) {
	for _, c := range []struct{ name, document, wantErr string }{
		{"none", "", ""},
		{"null", " null\n", ""},
		{"json", `{"name": "x", "inner": {"value": 0.5}}`, ""},
		{"yaml", "name: x\nlimits: {cpu: 3}\n", ""},
		{"yaml in flow style", "{name: x, limits: {cpu: 3}}", ""},
		{"unknown field", `{"nam": "x"}`, `unknown field "nam"`},
		{"unknown field below", `{"inner": {"vlaue": 1}}`, `unknown field "vlaue"`},
		{"duplicate", `{"name": "x", "name": "y"}`, `duplicate field "name"`},
		{"duplicate in another case", `{"name": "x", "Name": "y"}`, `duplicate field "Name"`},
		{"duplicate below", `{"list": [{"key": "a"}, {"key": "a", "key": "b"}]}`, `duplicate field "list[1].key"`},
		{"duplicate in yaml", "name: x\nname: y\n", `"name" already set`},
		{"wrong type", `{"inner": {"value": "much"}}`, "inner.value"},
		{"not an object", `["name"]`, "arguments"},
		{"broken", `{"name": "x"`, "unexpected EOF"},
		{"more", `{"name": "x"} {}`, "after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := scheduler.NewArguments([]byte(c.document)).Decode(&arguments{})
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("got %v, want %q", err, c.wantErr)
			}
		})
	}
}

func TestArgumentsKeepDefaults(t *testing.T) {
	got := arguments{Name: "default", Limits: map[string]int{"cpu": 1}}
	if err := scheduler.NewArguments([]byte(`{"limits": {"memory": 2}}`)).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(arguments{Name: "default", Limits: map[string]int{"cpu": 1, "memory": 2}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatusOfNilIsSuccess(t *testing.T) {
	var success *scheduler.Status
	cause := errors.New("broken")
	for _, c := range []struct {
		status *scheduler.Status
		code   scheduler.Code
		text   string
	}{
		{success, scheduler.CodeSuccess, "Success"},
		{scheduler.Error(nil), scheduler.CodeSuccess, "Success"},
		{scheduler.Error(cause), scheduler.CodeError, "Error: broken"},
		{scheduler.Unschedulable("a", "b"), scheduler.CodeUnschedulable, "Unschedulable: a, b"},
		{scheduler.Unresolvable(), scheduler.CodeUnresolvable, "UnschedulableAndUnresolvable"},
		{scheduler.Wait(), scheduler.CodeWait, "Wait"},
		{scheduler.Skip(), scheduler.CodeSkip, "Skip"},
	} {
		if c.status.Code() != c.code || c.status.String() != c.text ||
			c.status.IsSuccess() != (c.code == scheduler.CodeSuccess) {
			t.Errorf("got %v, want %v", c.status, c.text)
		}
	}
	if !errors.Is(scheduler.Error(cause).Err(), cause) || success.Err() != nil {
		t.Error("the error is lost")
	}
}
