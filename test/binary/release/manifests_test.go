//go:build linux && releases

package release

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

const downloads = "https://github.com/pmk-sched/pmk-sched/releases/download"

// serve serves the files of a release under /VERSION/, as the site of the releases does.
func serve(t *testing.T, dist string) string {
	t.Helper()
	server := httptest.NewServer(http.StripPrefix("/"+version+"/", http.FileServer(http.Dir(dist))))
	t.Cleanup(server.Close)
	return server.URL
}

// krewManifest is the part of a plugin manifest that the tests read.
type krewManifest struct {
	Spec struct {
		Version, ShortDescription string
		Platforms                 []struct{ URI, SHA256 string }
	}
}

// checkKrew installs pmk-sched with krew, from a file with a local archive and from an index.
func checkKrew(t *testing.T, dist string) {
	file := filepath.Join(dist, "pmk-sched_"+version+"_krew.yaml")
	var m krewManifest
	if err := yaml.Unmarshal([]byte(read(t, file)), &m); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Spec.ShortDescription); m.Spec.Version != version || n == 0 || n > 50 || len(m.Spec.Platforms) != 4 {
		t.Errorf("manifest %+v", m)
	}
	for _, p := range m.Spec.Platforms {
		checkDownload(t, dist, p.URI, p.SHA256)
	}
	home, index := t.TempDir(), t.TempDir()
	text := strings.ReplaceAll(read(t, file), downloads, serve(t, dist))
	shell(t, `mkdir "$0/plugins" && printf %s "$1" >"$0/plugins/pmk-sched.yaml" && cd "$0" && git init -q &&
		git add . && git -c user.name=t -c user.email=t@localhost commit -qm index`, index, text)
	krew := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(run.Context(t), run.Binary(t, "krew"), args...)
		cmd.Env = append(os.Environ(), "KREW_ROOT="+home, "HOME="+home, "KREW_NO_UPGRADE_CHECK=1",
			"KREW_DEFAULT_INDEX_URI="+index)
		run.Command(t, cmd).OK(t)
	}
	installed := func() {
		t.Helper()
		got := output(t, filepath.Join(home, "bin/kubectl-pmk_sched"), "version")
		if !strings.Contains(got, version) {
			t.Errorf("kubectl pmk-sched version prints %s", got)
		}
	}
	krew("update")
	krew("install", "--manifest", file, "--archive", archive(dist, "linux_amd64"))
	installed()
	krew("uninstall", "pmk-sched")
	krew("index", "add", "local", index)
	krew("install", "local/pmk-sched")
	installed()
}

// checkDownload fails unless a URL names a file of the release with that checksum.
func checkDownload(t *testing.T, dist, url, digest string) {
	t.Helper()
	name, ours := strings.CutPrefix(url, downloads+"/"+version+"/")
	if !ours || !strings.Contains(read(t, filepath.Join(dist, "SHA256SUMS")), digest+"  "+name+"\n") {
		t.Errorf("%s with the checksum %s is not in SHA256SUMS", url, digest)
	}
}

// homebrew is the part of Homebrew that a formula calls: it prints the url and the checksum of each
// platform, and then the files that install installs from the directory that is its argument.
const homebrew = `
class Installer
  def initialize(name) = @name = name
  def install(files)
    Array(files.is_a?(Hash) ? files.keys : files).each do |f|
      raise "#{f} is missing" unless File.file?(f)
      puts "install #{@name} #{f}"
    end
  end
end
class Formula
  def self.desc(text) = nil
  def self.homepage(text) = nil
  def self.license(text) = nil
  def self.version(text) = puts("version #{text}")
  def self.test = nil
  def self.url(text) = @url = text
  def self.sha256(text) = puts("download #{@platform} #{@url} #{text}")
  %w[macos linux arm intel].each do |name|
    define_singleton_method("on_" + name) do |&b|
      old, @platform = @platform, [@platform, name].compact.join("-")
      b.call
      @platform = old
    end
  end
  %w[bin man1 bash_completion zsh_completion fish_completion].each { |n| define_method(n) { Installer.new(n) } }
end
load ARGV[0]
Dir.chdir(ARGV[1]) { PmkSched.new.install }
`

func checkFormula(t *testing.T, dist string) {
	formula := filepath.Join(dist, "pmk-sched_"+version+"_homebrew.rb")
	output(t, "ruby", "-c", formula)
	printed := output(t, "ruby", "-e", homebrew, formula, unpack(t, archive(dist, "linux_amd64")))
	found := map[string]bool{}
	for line := range strings.Lines(printed) {
		if f := strings.Fields(line); f[0] == "download" {
			found[f[1]] = true
			checkDownload(t, dist, f[2], f[3])
			platform := strings.NewReplacer("macos", "darwin", "intel", "amd64", "arm", "arm64", "-", "_").Replace(f[1])
			if !strings.HasSuffix(f[2], "_"+platform+".tar.gz") {
				t.Errorf("%s downloads %s", f[1], f[2])
			}
		}
	}
	if len(found) != 4 {
		t.Errorf("the formula has the platforms %v", found)
	}
	for _, line := range []string{"version 0.1.0\n", "install bin pmk-sched\n", "install man1 man/pmk-sched-deploy.1\n",
		"install bash_completion completion/pmk-sched.bash\n"} {
		if !strings.Contains(printed, line) {
			t.Errorf("the formula does not %q:\n%s", line, printed)
		}
	}
}
