package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var testNode = Node{
	Bridge:  "slipway0",
	PodCIDR: netip.MustParsePrefix("10.244.0.0/22"),
	IP:      netip.MustParseAddr("10.244.0.1"),

	NodePorts: PortSpan{30000, 32767},
}

// Each folder of testdata has objects of the cluster and the nftables text that they mean.
// UPDATE_GOLDEN=1 writes the text again.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, path := range inputs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			ruleset, problems := Compile(parseInput(t, content), testNode)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			want := filepath.Join(dir, "want.nft")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(want, []byte(ruleset.Text()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if ruleset.Text() != string(expected) {
				t.Errorf("text differs from %s; got:\n%s", want, ruleset.Text())
			}
		})
	}
}

// The order in which a watch delivers objects must not make another text, which would be loaded again.
func TestTextDoesNotDependOnOrder(t *testing.T) {
	content, err := os.ReadFile("testdata/organization/input.yaml")
	if err != nil {
		t.Fatal(err)
	}
	forward := parseInput(t, content)
	backward := Input{
		Policies: reversed(forward.Policies), Pods: reversed(forward.Pods), Namespaces: reversed(forward.Namespaces),
	}
	one, _ := Compile(forward, testNode)
	other, _ := Compile(backward, testNode)
	if one.Text() != other.Text() {
		t.Errorf("texts differ:\n%s\n%s", one.Text(), other.Text())
	}
	if changed := Changed(one, other); len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
}

func reversed[T any](list []T) []T {
	var result []T
	for index := len(list) - 1; index >= 0; index-- {
		result = append(result, list[index])
	}
	return result
}

// parseInput reads YAML documents of the three kinds. Fields that do not exist are an error.
func parseInput(t testing.TB, content []byte) Input {
	t.Helper()
	var input Input
	for _, document := range bytes.Split(content, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		switch meta.Kind {
		case "Pod":
			input.Pods = append(input.Pods, parseStrict[corev1.Pod](t, document))
		case "Namespace":
			input.Namespaces = append(input.Namespaces, parseStrict[corev1.Namespace](t, document))
		case "NetworkPolicy":
			input.Policies = append(input.Policies, parseStrict[networkingv1.NetworkPolicy](t, document))
		default:
			t.Fatalf("kind %q", meta.Kind)
		}
	}
	return input
}

func parseStrict[T any](t testing.TB, document []byte) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	return object
}
