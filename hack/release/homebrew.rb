class PmkSched < Formula
  desc "Build, deploy and simulate custom schedulers for Kubernetes"
  homepage "https://github.com/pmk-sched/pmk-sched"
  version "{{.Number}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      {{with of .Archives "darwin" "arm64"}}url "{{$.URL}}/{{.File}}"
      sha256 "{{.SHA256}}"{{end}}
    end
    on_intel do
      {{with of .Archives "darwin" "amd64"}}url "{{$.URL}}/{{.File}}"
      sha256 "{{.SHA256}}"{{end}}
    end
  end

  on_linux do
    on_arm do
      {{with of .Archives "linux" "arm64"}}url "{{$.URL}}/{{.File}}"
      sha256 "{{.SHA256}}"{{end}}
    end
    on_intel do
      {{with of .Archives "linux" "amd64"}}url "{{$.URL}}/{{.File}}"
      sha256 "{{.SHA256}}"{{end}}
    end
  end

  def install
    bin.install "pmk-sched"
    bin.install "pmk-lab" if OS.linux?
    man1.install Dir["man/*.1"]
    bash_completion.install "completion/pmk-sched.bash" => "pmk-sched"
    zsh_completion.install "completion/_pmk-sched"
    fish_completion.install "completion/pmk-sched.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/pmk-sched version")
  end
end
