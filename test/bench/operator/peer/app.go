package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is where the definition in app.yaml has the kind.
var groupVersion = schema.GroupVersion{Group: "bench.slipway.dev", Version: "v1"}

// App is an application behind a public address: what a Project of type http is to Slipway.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec"`
	Status AppStatus `json:"status,omitempty"`
}

// AppSpec is what a person declares.
type AppSpec struct {
	Image    string            `json:"image"`
	Port     int32             `json:"port"`
	Replicas int32             `json:"replicas"`
	Host     string            `json:"host"`
	Env      map[string]string `json:"env,omitempty"`
}

// AppStatus is what the operator reports.
type AppStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// AppList is a page of applications.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}

// DeepCopyObject copies the application, as caches require.
func (app *App) DeepCopyObject() runtime.Object {
	out := *app
	out.ObjectMeta = *app.ObjectMeta.DeepCopy()
	if app.Spec.Env != nil {
		out.Spec.Env = make(map[string]string, len(app.Spec.Env))
		for name, value := range app.Spec.Env {
			out.Spec.Env[name] = value
		}
	}
	out.Status.Conditions = nil
	for _, condition := range app.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *condition.DeepCopy())
	}
	return &out
}

// DeepCopyObject copies the list and its items.
func (list *AppList) DeepCopyObject() runtime.Object {
	out := AppList{TypeMeta: list.TypeMeta, ListMeta: *list.ListMeta.DeepCopy()}
	for index := range list.Items {
		out.Items = append(out.Items, *list.Items[index].DeepCopyObject().(*App))
	}
	return &out
}
