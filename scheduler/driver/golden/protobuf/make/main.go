// Writes the same Pods and Nodes in JSON and in protobuf, as the API server does: `go run . FOLDER`.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

const seed = 1

var scheme = runtime.NewScheme()

func main() {
	check(corev1.AddToScheme(scheme))
	folder := os.Args[1]
	filler := filler()
	pods := corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "71", Continue: "more"},
		// The first says nothing at all.
		Items: make([]corev1.Pod, 1),
	}
	for range 60 {
		var pod corev1.Pod
		filler.Fill(&pod)
		pods.Items = append(pods.Items, pod)
	}
	nodes := corev1.NodeList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "72"},
		Items:    make([]corev1.Node, 1),
	}
	for range 20 {
		var node corev1.Node
		filler.Fill(&node)
		nodes.Items = append(nodes.Items, node)
	}
	write(folder, "pods", &pods)
	write(folder, "nodes", &nodes)
	var events []metav1.WatchEvent
	for at := range pods.Items[:4] {
		kind := []string{"ADDED", "MODIFIED", "DELETED"}[at%3]
		events = append(events, event(kind, &pods.Items[at], "Pod"))
	}
	mark := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "73", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	events = append(events, event("BOOKMARK", &mark, "Pod"))
	events = append(events, event("ERROR", &metav1.Status{Code: 410, Message: "too old"}, "Status"))
	writeEvents(folder, "events", events)
}

// Fields are there, empty or not at all, at random. Texts are short.
func filler() *randfill.Filler {
	count := 0
	return randfill.NewWithSeed(seed).NilChance(0.7).NumElements(0, 2).Funcs(
		func(text *string, c randfill.Continue) {
			count++
			if *text = fmt.Sprintf("t%d", count); c.Intn(4) == 0 {
				*text = ""
			}
		},
		func(quantity *resource.Quantity, c randfill.Continue) {
			texts := []string{"100m", "1", "0", "1.5Gi", "12e6", "250Mi"}
			*quantity = resource.MustParse(texts[c.Intn(len(texts))])
		},
		func(time *metav1.Time, c randfill.Continue) {
			if c.Intn(3) > 0 {
				*time = metav1.Unix(c.Int63n(4_000_000_000), 0)
			}
		},
		func(number *intstr.IntOrString, c randfill.Continue) { *number = intstr.FromInt32(c.Int31n(99)) },
		func(meta *metav1.TypeMeta, _ randfill.Continue) { *meta = metav1.TypeMeta{} },
		func(fields *metav1.FieldsV1, c randfill.Continue) {
			annotations := []string{"f:note", "f:corridoros.io/grant", "f:corridoros.io/corridorRef"}
			fields.Raw = fmt.Appendf(nil, `{"f:metadata":{"f:annotations":{%q:{}}}}`, annotations[c.Intn(3)])
		},
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(meta)
			if c.Intn(2) == 0 {
				meta.Annotations = map[string]string{"note": "n", "corridoros.io/corridorRef": "a/b"}
			}
		},
		func(term *corev1.NodeSelectorTerm, c randfill.Continue) {
			c.Fill(&term.MatchExpressions)
			term.MatchFields = make([]corev1.NodeSelectorRequirement, 1)
			c.Fill(&term.MatchFields[0])
		},
		func(source *corev1.VolumeSource, c randfill.Continue) {
			c.FillNoCustom(source)
			keepOne(reflect.ValueOf(source).Elem(), c)
		},
		// The scheduler reads nothing of these.
		func(*corev1.SecurityContext, randfill.Continue) {},
		func(*corev1.PodSecurityContext, randfill.Continue) {},
		func(*corev1.Lifecycle, randfill.Continue) {},
		func(*corev1.Probe, randfill.Continue) {},
		func(*corev1.EphemeralContainer, randfill.Continue) {},
		func(*corev1.ContainerState, randfill.Continue) {},
		func(*corev1.ProjectedVolumeSource, randfill.Continue) {},
	)
}

// A volume has one source.
func keepOne(sources reflect.Value, c randfill.Continue) {
	var filled []reflect.Value
	for at := range sources.NumField() {
		if field := sources.Field(at); !field.IsNil() {
			filled = append(filled, field)
		}
	}
	if len(filled) == 0 {
		return
	}
	kept := c.Intn(len(filled))
	for at, field := range filled {
		if at != kept {
			field.SetZero()
		}
	}
}

func write(folder, name string, list runtime.Object) {
	text, err := json.Marshal(list)
	check(err)
	save(folder, name+".json", text)
	var binary bytes.Buffer
	check(protobuf.NewSerializer(scheme, scheme).Encode(list, &binary))
	save(folder, name+".pb", binary.Bytes())
}

func event(kind string, object runtime.Object, name string) metav1.WatchEvent {
	object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(name))
	return metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Object: object}}
}

// A line for each in JSON; each behind its length in protobuf.
func writeEvents(folder, name string, events []metav1.WatchEvent) {
	var text, binary bytes.Buffer
	framed := protobuf.LengthDelimitedFramer.NewFrameWriter(&binary)
	for _, event := range events {
		var object bytes.Buffer
		check(protobuf.NewSerializer(scheme, scheme).Encode(event.Object.Object, &object))
		check(json.NewEncoder(&text).Encode(event))
		event.Object = runtime.RawExtension{Raw: object.Bytes()}
		check(protobuf.NewRawSerializer(scheme, scheme).Encode(&event, framed))
	}
	save(folder, name+".json", text.Bytes())
	save(folder, name+".pb", binary.Bytes())
}

func save(folder, name string, content []byte) {
	check(os.WriteFile(filepath.Join(folder, name), content, 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
