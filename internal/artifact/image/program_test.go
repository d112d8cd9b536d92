package image

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// executable is a program whose text is the content.
func executable(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Uname: content}
}

func link(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}

// upstream are the layers of registry.k8s.io/kube-scheduler: a base, go-runner, and the program.
func upstream() [][]tar.Header {
	return [][]tar.Header{
		{{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "root"}, {
			Name: "usr/local/bin/", Typeflag: tar.TypeDir, Mode: 0o755}},
		{executable("go-runner", "go-runner")},
		{executable("usr/local/bin/kube-scheduler", "upstream")},
	}
}

func upstreamConfig() v1.Config {
	return v1.Config{Entrypoint: []string{"/go-runner"},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
}

// writeImage writes an archive of an image with layers and a configuration.
func writeImage(t *testing.T, layers [][]tar.Header, config v1.Config) Source {
	t.Helper()
	img := layerImage(t, layers...)
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file.Config = config
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	tag, err := parseTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "i.tar")
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		t.Fatal(err)
	}
	return Source{Archive: archive}
}

func TestExtractProgramFindsWhatTheContainerRuns(t *testing.T) {
	const atUsual = "/usr/local/bin/kube-scheduler"
	with := func(more ...tar.Header) [][]tar.Header { return append(upstream(), more) }
	path := func(value string) v1.Config {
		return v1.Config{Entrypoint: []string{"/go-runner"}, Env: []string{"PATH=/before", "PATH=" + value}}
	}
	for name, tc := range map[string]struct {
		layers        [][]tar.Header
		config        v1.Config
		command       []string
		at, text      string
		missing, fail string
	}{
		"name": {upstream(), upstreamConfig(), []string{"kube-scheduler"}, atUsual, "upstream", "", ""},
		"path": {upstream(), upstreamConfig(), []string{atUsual}, atUsual, "upstream", "", ""},
		"path that is not clean": {upstream(), upstreamConfig(), []string{"/usr/../usr/local/bin//kube-scheduler"}, atUsual,
			"upstream", "", ""},
		"wrapped": {upstream(), upstreamConfig(), []string{"/go-runner", atUsual}, atUsual, "upstream", "",
			""},
		"no command": {upstream(), upstreamConfig(), nil, atUsual, "upstream", "", ""},
		"no PATH":    {upstream(), v1.Config{}, []string{"kube-scheduler"}, atUsual, "upstream", "", ""},
		"first of PATH": {
			with(executable("opt/kube-scheduler", "other")), path("relative:/none:/opt:/usr/local/bin"),
			[]string{"kube-scheduler"}, "/opt/kube-scheduler", "other", "", "",
		},
		"first of PATH in a lower layer": {
			append([][]tar.Header{{executable("opt/kube-scheduler", "other")}}, upstream()...), path("/opt:/usr/local/bin"),
			[]string{"kube-scheduler"}, "/opt/kube-scheduler", "other", "", "",
		},
		"not executable in PATH": {
			with(tar.Header{Name: "opt/kube-scheduler", Typeflag: tar.TypeReg, Mode: 0o644, Uname: "data"}),
			path("/opt:/usr/local/bin"), []string{"kube-scheduler"}, atUsual, "upstream", "", "",
		},
		"directory in PATH": {
			with(tar.Header{Name: "opt/kube-scheduler/", Typeflag: tar.TypeDir, Mode: 0o755}), path("/opt:/usr/local/bin"),
			[]string{"kube-scheduler"}, atUsual, "upstream", "", "",
		},
		"not in PATH": {upstream(), path("/opt"), []string{"kube-scheduler"}, atUsual, "upstream", "kube-scheduler", ""},
		"link in PATH": {
			with(link("opt/kube-scheduler", "../usr/local/bin/kube-scheduler")), path("/opt"), []string{"kube-scheduler"},
			"/opt/kube-scheduler", "upstream", "", "",
		},
		"linked directory in PATH": {
			with(link("opt", "/usr/local/bin")), path("/opt"), []string{"kube-scheduler"}, "/opt/kube-scheduler", "upstream", "",
			"",
		},
		"link out of the image": {
			with(link("opt/kube-scheduler", "../../../../../../usr/local/bin/kube-scheduler")), path("/opt"),
			[]string{"kube-scheduler"}, "/opt/kube-scheduler", "upstream", "", "", // as the kernel does it
		},
		"link to nothing": {
			with(link("opt/kube-scheduler", "/none")), path("/opt:/usr/local/bin"), []string{"kube-scheduler"}, atUsual,
			"upstream", "", "",
		},
		"links in a circle": {
			with(link("opt/kube-scheduler", "other"), link("opt/other", "kube-scheduler")), path("/opt"),
			[]string{"kube-scheduler"}, atUsual, "upstream", "kube-scheduler", "",
		},
		"hard link": {
			with(tar.Header{Name: "opt/kube-scheduler", Typeflag: tar.TypeLink, Linkname: "usr/local/bin/kube-scheduler"}),
			path("/opt"), []string{"kube-scheduler"}, "/opt/kube-scheduler", "upstream", "", "",
		},
		"relative to the working directory": {
			upstream(), v1.Config{WorkingDir: "/usr/local"}, []string{"bin/kube-scheduler"}, atUsual, "upstream", "", "",
		},
		"replaced by an upper layer": {with(executable("usr/local/bin/kube-scheduler", "upper")), upstreamConfig(),
			[]string{"kube-scheduler"}, atUsual, "upper", "", ""},
		"removed by an upper layer": {
			with(executable("usr/bin/kube-scheduler", "moved"),
				tar.Header{Name: "usr/local/bin/.wh.kube-scheduler", Typeflag: tar.TypeReg}),
			upstreamConfig(), []string{"kube-scheduler"}, "/usr/bin/kube-scheduler", "moved", "", "",
		},
		"another path than the command's": {upstream(), upstreamConfig(), []string{"/opt/kube-scheduler"}, atUsual,
			"upstream", "/opt/kube-scheduler", ""},
		"no wrapper": {
			[][]tar.Header{{executable("usr/local/bin/kube-scheduler", "built")}},
			v1.Config{Entrypoint: []string{SchedulerPath}}, []string{"/go-runner",
				"kube-scheduler"}, atUsual, "built", "/go-runner", "",
		},
		"entrypoint": {
			[][]tar.Header{{executable("custom", "custom"), executable("bin/sh", "sh")}},
			v1.Config{Entrypoint: []string{"/custom", "--flag"}}, []string{"kube-scheduler"}, "/custom", "custom",
			"kube-scheduler", "",
		},
		"entrypoint in PATH": {
			[][]tar.Header{{executable("usr/bin/custom", "custom")}}, v1.Config{Entrypoint: []string{"custom"}}, nil,
			"/usr/bin/custom", "custom", "", "",
		},
		"only a wrapper": {upstream()[:2], upstreamConfig(), []string{"kube-scheduler"}, "", "", "",
			"it is at none of /usr/local/sbin/kube-scheduler, "},
		"wrapped in the entrypoint": {
			append(upstream()[:2], []tar.Header{executable("custom", "custom")}),
			v1.Config{Entrypoint: []string{"/go-runner", "--also-stdout", "/custom"}}, nil, "/custom", "custom", "", "",
		},
		"empty": {nil, v1.Config{}, nil, "", "", "", "it is at none of"},
	} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "kube-scheduler")
			got, err := ExtractProgram(t.Context(), writeImage(t, tc.layers, tc.config), tc.command, "linux/amd64", to)
			if tc.fail != "" {
				wantError(t, err, false, tc.fail)
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := (Program{Path: tc.at, Missing: tc.missing}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if text := readText(t, to); text != tc.text {
				t.Errorf("got %q, want %q", text, tc.text)
			}
			if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 {
				t.Errorf("mode %v, error %v", info.Mode(), err)
			}
		})
	}
}
