package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// withCommand runs the program with the given arguments, and act instead of the command's action.
func withCommand(t *testing.T, path []string, args []string, act func(c *cli.Context, u *ui) error) error {
	t.Helper()
	u := newUI(strings.NewReader(""), t.Output(), t.Output())
	p := newProgram(u, "pmk-sched")
	commands := p.App.Commands
	for i, name := range path {
		for _, cmd := range commands {
			if cmd.Name == name && i == len(path)-1 {
				cmd.Action = func(c *cli.Context) error { return act(c, u) }
			} else if cmd.Name == name {
				commands = cmd.Subcommands
				break
			}
		}
	}
	return p.Execute(t.Context(), append([]string{"pmk-sched"}, args...))
}

func chdir(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const everything = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: from-file, namespace: scheduling}
spec:
  source: {branch: v1.29.3}
  image: {repository: registry.example.com/sched/my-scheduler, tag: v7, base: busybox, platforms: [linux/amd64, linux/arm64], pullPolicy: Always}
  configuration: {preset: binpack}
  credentials: serviceaccount
  replicas: 2
  nodeSelector: {pool: system}
  ports: {secure: 10300}
`

// deployInput is the input of the plan of `pmk-sched deploy`.
type deployInput struct {
	Name, Namespace string
	Spec            v1alpha1.CustomSchedulerSpec
	deploy.Facts
	// ConfigurationName is the name of the configuration in messages.
	ConfigurationName string
}

func TestArgumentsGiveTheseOptions(t *testing.T) {
	const config = "kind: KubeSchedulerConfiguration\n"
	defaults := deployInput{Name: "n", Namespace: "kube-system",
		Facts: deploy.Facts{Image: "i", Branch: "auto", Version: ownVersion()}}
	defaults.Spec.Image.Reference = "i"
	with := func(change func(*deployInput)) deployInput {
		o := defaults
		change(&o)
		return o
	}
	file := deployInput{
		Name: "from-file", Namespace: "scheduling",
		Spec: v1alpha1.CustomSchedulerSpec{
			Source: v1alpha1.Source{Branch: "v1.29.3"},
			Image: v1alpha1.Image{Repository: "registry.example.com/sched/my-scheduler", Tag: "v7", Base: "busybox",
				Platforms: []string{"linux/amd64", "linux/arm64"}, PullPolicy: "Always"},
			Configuration: v1alpha1.Configuration{Preset: "binpack"},
			Credentials:   "serviceaccount", Replicas: 2, NodeSelector: map[string]string{"pool": "system"},
			Ports: v1alpha1.Ports{Secure: 10300},
		},
		Facts: deploy.Facts{Image: "registry.example.com/sched/my-scheduler:v7", Branch: "v1.29.3",
			Credentials: "serviceaccount", Version: ownVersion()},
	}
	withFile := func(change func(*deployInput)) deployInput {
		o := file
		change(&o)
		return o
	}
	tests := map[string]struct {
		args []string
		env  map[string]string
		want deployInput
	}{
		"least": {args: []string{"deploy", "--name", "n", "--image", "i"}, want: defaults},
		"namespace before the command": {args: []string{"-n", "x", "deploy", "--name", "n", "--image", "i"},
			want: with(func(o *deployInput) { o.Namespace = "x" })},
		"namespace after the command": {args: []string{"deploy", "--name", "n", "--image", "i", "-n", "x"},
			want: with(func(o *deployInput) { o.Namespace = "x" })},
		"the nearest namespace wins": {args: []string{"-n", "x", "deploy", "--name", "n", "--image", "i", "--namespace",
			"y"}, want: with(func(o *deployInput) { o.Namespace = "y" })},
		"namespace of the environment": {args: []string{"deploy", "--name", "n", "--image", "i"},
			env: map[string]string{"PMK_SCHED_NAMESPACE": "z"}, want: with(func(o *deployInput) { o.Namespace = "z" })},
		"a flag wins over the environment": {args: []string{"deploy", "-n", "x", "--name", "n", "--image", "i"},
			env: map[string]string{"PMK_SCHED_NAMESPACE": "z"}, want: with(func(o *deployInput) { o.Namespace = "x" })},
		"commas do not split": {args: []string{"deploy", "--name", "n", "--image", "i", "--node-selector", "a=1,b=2",
			"--node-selector", "c="}, want: with(func(o *deployInput) {
			o.Spec.NodeSelector = map[string]string{"a": "1,b=2", "c": ""}
		})},
		"configuration": {args: []string{"deploy", "--name", "n", "--image", "i", "--config", "c.yaml"},
			want: with(func(o *deployInput) {
				o.Spec.Configuration = v1alpha1.Configuration{File: "c.yaml", Inline: config}
				o.ConfigurationName = "c.yaml"
			})},
		"file": {args: []string{"deploy", "-f", "all.yaml"}, want: file},
		"flags win over the file": {args: []string{"deploy", "-f", "all.yaml", "--name", "n", "--replicas", "1", "--port",
			"11000", "--image", "i", "--branch", "auto", "--credentials", "node"}, want: withFile(func(o *deployInput) {
			o.Name, o.Image, o.Branch, o.Credentials = "n", "i", "auto", "node"
			o.Spec.Replicas, o.Spec.Ports.Secure, o.Spec.Image.Reference, o.Spec.Credentials = 1, 11000, "i", "node"
		})},
		"a configuration puts a preset away": {args: []string{"deploy", "-f", "all.yaml", "--config", "c.yaml"},
			want: withFile(func(o *deployInput) {
				o.Spec.Configuration = v1alpha1.Configuration{File: "c.yaml", Inline: config}
				o.ConfigurationName = "c.yaml"
			})},
		"any node puts a selector away": {args: []string{"deploy", "-f", "all.yaml", "--node-selector", "any"},
			want: withFile(func(o *deployInput) {
				o.Spec.NodeSelector, o.Spec.AnyNode = nil, true
			})},
		"inline configuration": {args: []string{"deploy", "-f", "inline.yaml"}, want: with(func(o *deployInput) {
			o.Spec.Image = v1alpha1.Image{Repository: "i"}
			o.Spec.Configuration.Inline, o.ConfigurationName = "{parallelism: 4}\n", "spec.configuration.inline"
		})},
		"auto in the file": {args: []string{"deploy", "-f", "auto.yaml"}, want: with(func(o *deployInput) {
			o.Spec.Image = v1alpha1.Image{Repository: "i"}
			o.Spec.Source.Branch, o.Spec.Credentials, o.Credentials = "auto", "auto", "auto"
		})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			head := "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: n}\nspec:\n  image: " +
				"{repository: i}\n"
			chdir(t, map[string]string{
				"c.yaml": config, "all.yaml": everything,
				"inline.yaml": strings.Replace(head, "repository: i", "repository: i, tag: ''", 1) +
					"  configuration: {inline: {parallelism: 4}}\n",
				"auto.yaml": head + "  source: {branch: auto}\n  credentials: auto\n  replicas: auto\n  ports: {secure: auto}\n",
			})
			var got deployInput
			err := withCommand(t, []string{"deploy"}, tt.args, func(c *cli.Context, u *ui) error {
				sp, err := readSpec(c, u)
				if err != nil {
					return err
				}
				request, facts, err := sp.Scheduler()
				if err != nil {
					return err
				}
				_, _, name := deploy.Configuration(request)
				got = deployInput{request.Name, request.Namespace, request.Spec, facts, name}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got.Image = strings.TrimSuffix(got.Image, ":"+image.ReleaseInTag)
			if diff := gocmp.Diff(tt.want, got, cmpopts.IgnoreFields(deploy.Facts{}, "Now")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBuildArgumentsGiveTheseOptions(t *testing.T) {
	const releaseTag = "localhost/kube-scheduler:" + image.ReleaseInTag
	linux := []build.Platform{build.Host()}
	linux[0].OS = "linux"
	both := []build.Platform{{OS: "linux", Arch: "amd64"}, {OS: "linux", Arch: "arm64"}}
	tests := map[string]struct {
		args []string
		want pack.Request
	}{
		"least": {args: nil, want: pack.Request{Branch: "auto", Platforms: linux, Base: image.Base{Reference: "busybox"},
			Tag: releaseTag}},
		"another Go, and a check": {
			args: []string{"--go", "newest", "--vulnerabilities", "db", "--vex", "vex.json"},
			want: pack.Request{Branch: "auto", Platforms: linux, Base: image.Base{Reference: "busybox"}, Tag: releaseTag,
				Go: "newest", Vulnerabilities: "db", VEX: "vex.json", Recipe: v1alpha1.Recipe{Go: "newest"}},
		},
		"platforms": {args: []string{"--platform", "linux/amd64,linux/arm64"},
			want: pack.Request{Branch: "auto", Platforms: both, Base: image.Base{Reference: "busybox"}, Tag: releaseTag,
				Recipe: v1alpha1.Recipe{Platforms: []string{"linux/amd64,linux/arm64"}}}},
		"platform twice": {
			args: []string{"--platform", "linux/amd64", "--platform", "linux/arm64"},
			want: pack.Request{
				Branch: "auto", Platforms: both, Base: image.Base{Reference: "busybox"}, Tag: releaseTag,
				Recipe: v1alpha1.Recipe{Platforms: []string{"linux/amd64", "linux/arm64"}},
			},
		},
		"busybox and containerd": {
			args: []string{"--branch", "v1.24.3", "--busybox", "bb", "--tag", "localhost/x:v1", "--load", "containerd=/x.sock",
				"--load", "docker", "--archive", "a.tar", "--archive", "b"},
			want: pack.Request{
				Branch: "v1.24.3", Platforms: linux, Base: image.Base{Busybox: "bb"}, Tag: "localhost/x:v1",
				Destinations: image.Destinations{
					Archives: []string{"a.tar", "b"}, Load: []image.Runtime{{Name: "containerd", Socket: "/x.sock"}, {Name: "docker"}},
				},
				Recipe: v1alpha1.Recipe{Busybox: "bb"},
			},
		},
		"file": {
			args: []string{"-f", "all.yaml", "--push"},
			want: pack.Request{Branch: "v1.29.3", Platforms: both, Base: image.Base{Reference: "busybox"},
				Tag: "registry.example.com/sched/my-scheduler:v7", Destinations: image.Destinations{Push: true},
				Recipe: v1alpha1.Recipe{Base: "busybox", Platforms: []string{"linux/amd64", "linux/arm64"}}},
		},
		"busybox wins over the file's base": {
			args: []string{"-f", "all.yaml", "--busybox", "bb"},
			want: pack.Request{Branch: "v1.29.3", Platforms: both, Base: image.Base{Busybox: "bb"},
				Tag: "registry.example.com/sched/my-scheduler:v7", Recipe: v1alpha1.Recipe{Busybox: "bb",
					Platforms: []string{"linux/amd64", "linux/arm64"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			chdir(t, map[string]string{"all.yaml": everything, "bb": "x"})
			var got pack.Request
			err := withCommand(t, []string{"build"}, append([]string{"build"}, tt.args...), func(c *cli.Context, u *ui) error {
				sp, err := readBuildSpec(c, u)
				if err == nil {
					got, err = sp.Build(readBuildFlags(c))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			dir, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			got.Recipe.Busybox = strings.TrimPrefix(got.Recipe.Busybox, dir+"/") // paths are recorded in full
			if diff := gocmp.Diff(tt.want, got, cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(pack.Request{}, "Version")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// cli.Exit would end the process from inside Run unless a handler is set.
func TestExitOfTheLibraryDoesNotEndTheProcess(t *testing.T) {
	err := withCommand(t, []string{"version"}, []string{"version"},
		func(*cli.Context, *ui) error { return cli.Exit("end", 7) })
	if err == nil || err.Error() != "end" {
		t.Errorf("got %v", err)
	}
}

func TestExitStatusOfErrors(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":                      {nil, 0},
		"some":                      {errors.New("x"), 1},
		"command line":              {problem.Invalidf("", "x"), 2},
		"wrapped":                   {errors.Join(errors.New("y"), problem.Invalidf("", "x")), 2},
		"finding":                   {command.CheckFailed("x"), 3},
		"status of another program": {&command.ExitError{Status: 42}, 42},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := command.ExitStatus(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
