package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// A Secret must not run a program of this machine or read its files, and errors have no part of its
// content.
func TestUntrustedKubeconfigsAreRefused(t *testing.T) {
	const template = `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://x", CLUSTER}}],
users: [{name: u, user: {USER}}]}`
	const exec = `exec: {apiVersion: client.authentication.k8s.io/v1, command: s3cret, interactiveMode: Always}`
	for name, c := range map[string]struct {
		cluster, user string
		allowExec     bool
		refused       string
	}{
		"token":                  {user: "token: s3cret"},
		"token file":             {user: "tokenFile: /s3cret", refused: "file of this machine"},
		"client certificate":     {user: "client-certificate: /s3cret", refused: "file of this machine"},
		"client key":             {user: "client-key: /s3cret", refused: "file of this machine"},
		"certificate authority":  {cluster: "certificate-authority: /s3cret", refused: "file of this machine"},
		"auth provider":          {user: "auth-provider: {name: s3cret}", allowExec: true, refused: "auth-provider"},
		"plugin":                 {user: exec, refused: "credential plugin"},
		"plugin that is allowed": {user: exec, allowExec: true},
		"allowed plugin and file": {user: exec + ", tokenFile: /s3cret", allowExec: true,
			refused: "file of this machine"},
		"damaged": {user: `token: "s3cret`, refused: "not a kubeconfig"},
		"number":  {user: `client-key-data: s3cret`, refused: "not a kubeconfig"},
	} {
		text := strings.NewReplacer("CLUSTER", c.cluster, "USER", c.user).Replace(template)
		config, err := parseUntrusted([]byte(text), c.allowExec)
		checkRefusal(t, name, err, c.refused)
		if err != nil {
			continue
		}
		cfg, err := kubeapi.Connect(kubeapi.ConnectOptions{Loaded: config})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cfg.Host != "https://x" || (cfg.ExecProvider != nil) != c.allowExec {
			t.Errorf("%s: got %v", name, cfg)
		}
		if cfg.ExecProvider != nil && cfg.ExecProvider.InteractiveMode != "Never" {
			t.Errorf("%s: the plugin may ask the user", name)
		}
	}
}

func checkRefusal(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case (err != nil) != (want != ""):
		t.Errorf("%s: got error %v", name, err)
	case err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")):
		t.Errorf("%s: got %q, want %q without the content", name, err, want)
	}
}

func TestArgoCDClusters(t *testing.T) {
	for name, c := range map[string]struct {
		server, config string
		allowExec      bool
		refused        string
		host, token    string
	}{
		"token": {server: "https://x", config: `{"bearerToken":"s3cret","tlsClientConfig":{"insecure":true}}`,
			host: "https://x", token: "s3cret"},
		"its own cluster":  {server: argoInCluster + "/", config: `{"tlsClientConfig":{"insecure":false}}`, host: "https://base"},
		"its own, without": {server: argoInCluster, host: "https://base"},
		"its own, with a token": {server: argoInCluster, config: `{"bearerToken":"s3cret"}`, host: argoInCluster,
			token: "s3cret"},
		"AWS":       {server: "https://x", config: `{"awsAuthConfig":{"clusterName":"s3cret"}}`, refused: "awsAuthConfig"},
		"plugin":    {server: "https://x", config: `{"execProviderConfig":{"command":"s3cret"}}`, refused: "credential plugin"},
		"damaged":   {server: "https://x", config: `{"bearerToken": s3cret}`, refused: "not the JSON"},
		"no server": {config: `{"bearerToken":"s3cret"}`, refused: "no key server"},
		"allowed plugin": {server: "https://x", host: "https://x", allowExec: true,
			config: `{"execProviderConfig":{"command":"p","env":{"B":"2","A":"1"},"apiVersion":"client.authentication.k8s.io/v1"}}`},
	} {
		base := kubeapi.ConnectOptions{Server: "https://base", Kubeconfig: "/dev/null"}
		secret := &corev1.Secret{Data: map[string][]byte{"name": []byte(name), "server": []byte(c.server),
			"config": []byte(c.config)}}
		got := Source{AllowExec: c.allowExec}.argoCluster(base, secret)
		checkRefusal(t, name, got.err, c.refused)
		if got.err != nil {
			continue
		}
		cfg, err := kubeapi.Connect(got.connection)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cfg.Host != c.host || cfg.BearerToken != c.token || (cfg.ExecProvider != nil) != c.allowExec {
			t.Errorf("%s: got %v", name, cfg)
		}
	}
}

// All fields of a Secret of Argo CD are used.
func TestArgoCDSecretBecomesAKubeconfig(t *testing.T) {
	got, err := argoKubeconfig("https://x", []byte(`{"username": "u", "password": "p", "bearerToken": "t",
"tlsClientConfig": {"serverName": "name", "certData": "Y2VydA==", "keyData": "a2V5", "caData": "Y2E="},
"execProviderConfig": {"command": "c", "args": ["a"], "env": {"B": "2", "A": "1"}, "apiVersion": "v", "installHint": "h"},
"awsAuthConfig": null, "proxyUrl": "https://proxy"}`), true)
	if err != nil {
		t.Fatal(err)
	}
	want := single("https://x", &clientcmdapi.Cluster{
		Server: "https://x", TLSServerName: "name", CertificateAuthorityData: []byte("ca"), ProxyURL: "https://proxy",
	}, &clientcmdapi.AuthInfo{
		Username: "u", Password: "p", Token: "t", ClientCertificateData: []byte("cert"), ClientKeyData: []byte("key"),
		Exec: &clientcmdapi.ExecConfig{Command: "c", Args: []string{"a"}, APIVersion: "v", InstallHint: "h",
			Env:             []clientcmdapi.ExecEnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(clientcmdapi.ExecConfig{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for config, kubeconfig := range map[string]bool{
		``: false, `{}`: false, `{"tlsClientConfig":{"caData":"Y2E="}}`: false, `{"username":"u"}`: true,
		`{"tlsClientConfig":{"certData":"Y2VydA=="}}`: true, `{"execProviderConfig":{"command":"c"}}`: true,
	} {
		if got, err := argoKubeconfig(argoInCluster, []byte(config), true); err != nil || (got != nil) != kubeconfig {
			t.Errorf("the cluster of Argo CD with %q: got %v, %v", config, got, err)
		}
	}
	for want, data := range map[string]map[string][]byte{
		"named": {"name": []byte("named"), "server": []byte("https://x/")}, "https://x": {"server": []byte("https://x/")},
		"secret": {},
	} {
		about := metav1.ObjectMeta{Name: "secret", Labels: map[string]string{"a": "b"}}
		secret := &corev1.Secret{ObjectMeta: about, Data: data}
		if got := (Source{}).argoCluster(kubeapi.ConnectOptions{}, secret); got.Name != want || got.Labels["a"] != "b" {
			t.Errorf("got %s with the labels %v, want %s", got.Name, got.Labels, want)
		}
	}
}

func TestClusterProfilesUseThePluginsOfTheUser(t *testing.T) {
	const plugins = `{"providers": [{"name": "mine", "execConfig": {"apiVersion": "client.authentication.k8s.io/v1",
"command": "plugin", "provideClusterInfo": true, "interactiveMode": "Always"}}, {"name": "without"}]}`
	var file pluginFile
	if err := yaml.Unmarshal([]byte(plugins), &file); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ status, refused, host string }{
		"access provider": {status: `{accessProviders: [{name: other, cluster: {server: "https://other"}},
{name: mine, cluster: {server: "https://x", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: b}}]}}]}`,
			host: "https://x"},
		"former field": {status: `{credentialProviders: [{name: mine, cluster: {server: "https://x"}}]}`, host: "https://x"},
		"both fields": {status: `{credentialProviders: [{name: mine, cluster: {server: "https://former"}}],
accessProviders: [{name: mine, cluster: {server: "https://x"}}]}`, host: "https://x"},
		"without plugin": {status: `{accessProviders: [{name: without, cluster: {server: "https://x"}}]}`, refused: "without"},
		"none":           {status: `{}`, refused: "no access providers"},
		"other":          {status: `{accessProviders: [{name: other, cluster: {server: "https://x"}}]}`, refused: "other"},
		"names a file":   {status: `{accessProviders: [{name: mine, cluster: {certificate-authority: /s3cret}}]}`, refused: "file"},
		"not an object":  {status: `{accessProviders: [s3cret]}`, refused: "decode"},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("status: "+c.status), &object.Object); err != nil {
			t.Fatal(err)
		}
		config, err := file.kubeconfig(object)
		checkRefusal(t, name, err, c.refused)
		if err != nil {
			continue
		}
		cfg, err := kubeapi.Connect(kubeapi.ConnectOptions{Loaded: config})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cfg.Host != c.host || cfg.ExecProvider == nil || cfg.ExecProvider.Command != "plugin" ||
			cfg.ExecProvider.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
			t.Errorf("%s: got %v", name, cfg)
		}
		if name == "access provider" && cfg.ExecProvider.Config == nil {
			t.Errorf("%s: the plugin does not get the extension of the cluster", name)
		}
	}
}
