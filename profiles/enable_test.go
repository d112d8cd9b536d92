package profiles_test

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// loadAware returns a plugin as described by a build.
func loadAware() profiles.Plugin {
	return profiles.Plugin{
		Name: "LoadAware", Points: []string{"filter", "preScore", "score"}, Weight: 3,
		Args: []byte(`{"address":"http://prometheus:9090","staleness":"1m"}`),
	}
}

func TestRenderEnablesCompiledInPlugins(t *testing.T) {
	sorter := profiles.Plugin{Name: "Sorter", Points: []string{"queueSort", "bind", "permit"}}
	second := profiles.Plugin{Name: "Second", Points: []string{"bind"}}
	partly := loadAware()
	partly.Enable = []string{"score"}
	idle := loadAware()
	idle.Enable = []string{}
	const own = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: my-scheduler
  plugins:
    score:
      enabled:
      - name: LoadAware
        weight: 9
  pluginConfig:
  - name: LoadAware
    args:
      staleness: 5m # theirs
`
	for name, test := range map[string]struct {
		source  string
		plugins []profiles.Plugin
	}{
		"whole":         {"", []profiles.Plugin{loadAware()}},
		"partly":        {"", []profiles.Plugin{partly}},
		"idle":          {"", []profiles.Plugin{idle}},
		"alone":         {"", []profiles.Plugin{sorter, second}},
		"named-by-user": {own, []profiles.Plugin{loadAware()}},
	} {
		for _, release := range []string{"v1.21.3", "v1.24.3", "v1.36.3"} {
			if strings.HasPrefix(name, "named") && release != "v1.36.3" {
				continue
			}
			t.Run(name+"-"+release, func(t *testing.T) {
				r := request(t, release)
				r.Enable = test.plugins
				if test.source != "" {
					r.Source, r.SourceName = []byte(test.source), "f.yaml"
				}
				out, err := profiles.Render(r)
				if err != nil {
					t.Fatal(err)
				}
				equalRendered(t, "testdata/enable/"+name+"-"+release+".yaml", out)
			})
		}
	}
}

func TestRenderRejectsInvalidPlugins(t *testing.T) {
	results := transcript{}
	for want, change := range map[string]func(*profiles.Plugin){
		`does not implement the extension point "bind"`: func(p *profiles.Plugin) { p.Enable = []string{"bind"} },
		"invalid weight -1":                             func(p *profiles.Plugin) { p.Weight = -1 },
		"invalid weight 2": func(
			p *profiles.Plugin) {
			p.Points, p.Weight = []string{"filter"}, 2
		},
		"args: expected a mapping, got": func(p *profiles.Plugin) { p.Args = []byte("[1, 2]") },
		"parse args: yaml":              func(p *profiles.Plugin) { p.Args = []byte("{") },
	} {
		p := loadAware()
		change(&p)
		r := request(t, "v1.24.3")
		r.Enable = []profiles.Plugin{p}
		_, err := profiles.Render(r)
		results.add(want, err, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "LoadAware") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	results.equal(t, "render-plugin-refuses.txt")
}

func TestArgumentsOfEnabledPlugin(t *testing.T) {
	r := request(t, "v1.36.3")
	r.Enable = []profiles.Plugin{loadAware(), {Name: "Bare", Points: []string{"filter"}}}
	out, err := profiles.Render(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"LoadAware": "address: http://prometheus:9090\nstaleness: 1m\n|", "Bare": "|", "Other": "",
	} {
		args, err := out.Arguments(name)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, a := range args {
			got += string(a) + "|"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
