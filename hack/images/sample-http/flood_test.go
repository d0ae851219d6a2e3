package main

import (
	"strings"
	"testing"
)

func TestAFloodIsAsLongAsItIsAskedFor(t *testing.T) {
	var log strings.Builder
	if err := flood(&log, []string{"250"}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(log.String(), "\n"); len(lines) != 5 || lines[3] != "wrote 250" {
		t.Errorf("wrote %q", lines)
	}
}

func TestAFloodRefusesOtherArguments(t *testing.T) {
	for _, arguments := range [][]string{{}, {"-1"}, {"1", "2"}, {"1073741825"}} {
		if err := flood(&strings.Builder{}, arguments); err == nil {
			t.Errorf("took %q", arguments)
		}
	}
}
