/** The members of `/v1` answers that the page shows. */

export interface ProjectItem {
  id: string;
  name: string;
  type_project: string;
  plan: string;
  status: string;
  managed_service?: { profile: string };
}

export interface ProjectList {
  projects: ProjectItem[];
  pagination: { page: number; limit: number; total: number; pages: number };
}

export interface Project extends ProjectItem {
  description: string;
  domain?: string;
  exposure?: string;
  instances: number;
  autoscaling?: Autoscaling;
  request_scaling?: { instances: number; requests_per_second: number };
  storage: { persistent: boolean; capacity: number };
  payment_mode: string;
  port?: number;
  additional_info: { current_instances: number; max_cpu: string; max_memory: string };
  image?: { url: string };
  custom_domains?: string[];
  custom_domain_setup?: { hostname: string; status: string; ssl_status: string; message?: string }[];
  database?: { engine: string; version: string; running_version?: string };
  readiness?: { command: string[] };
  pre_deploy_command?: string[];
  sleep_after_seconds?: number;
  sleeping_since?: string;
  schedule?: { cron: string; next_scheduled_at?: string };
  missed_runs?: { total: number; reasons: { reason: string; count: number; last_scheduled_at: string }[] };
  last_deployment?: {
    id: string;
    status: string;
    created_at: string;
    finished_at?: string;
    message?: string;
    pre_deploy?: PreDeployRun;
  };
  last_termination?: {
    instance: string;
    exit_code: number;
    reason: string;
    finished_at: string;
    restarts: number;
    last_lines?: string;
  };
  references?: { ready: boolean; reason?: string; message?: string };
  variable_groups?: { ids: string[]; ready: boolean; reason?: string; message?: string };
  build_failure?: { error_code?: string; error_message?: string };
  created_at: string;
  updated_at: string;
}

export interface Autoscaling {
  enabled: boolean;
  max_instances: number;
  cpu_target_percentage?: number;
  memory_target_percentage?: number;
  requests_per_second_target?: number;
}

export interface PreDeployRun {
  status: string;
  started_at?: string;
  finished_at?: string;
  exit_code?: number;
  last_lines?: string;
}

export interface Deployment {
  id: string;
  updated_image: boolean;
  created_at: string;
  status: string;
  image?: string;
  finished_at?: string;
  message?: string;
}

/** A run of a job, or a one-off run of an application. */
export interface Run {
  id: string;
  status: string;
  trigger?: string;
  scheduled_at?: string;
  requested_at?: string;
  command?: string[];
  exit_code?: number;
  started_at?: string;
  finished_at?: string;
  duration_seconds?: number;
  billed_minutes?: number;
  plan?: string;
  amount?: number;
}

export interface RunList {
  runs: Run[];
  pagination: { page: number; limit: number; total: number; total_pages: number };
  cycle_started_at: string;
  next_reset_at: string;
}

export interface CostSummary {
  totals: { currency: string; total_amount: number; executed_runs: number; billed_minutes: number }[];
  cycle_started_at: string;
  next_reset_at: string;
}

/** What charges come to. Amounts are decimals in text. */
export interface KindCost {
  kind: string;
  amount: string;
  charges: number;
}

export interface ProjectCost {
  project_id: string;
  name: string | null;
  deleted: boolean;
  amount: string;
  kinds: KindCost[];
}

export interface Usage {
  cycle_started_at: string;
  next_reset_at: string;
  plans_metered: boolean;
  amount: string;
  kinds: KindCost[];
  days: { day: string; amount: string }[];
  projects: ProjectCost[];
  pagination: { page: number; limit: number; total: number; total_pages: number };
  forecast: { amount: string; kinds: { kind: string; amount: string }[] } | null;
}

export interface Budget {
  /** A decimal in text, as all amounts here. */
  amount: string;
  notices: number[];
  hard_cap: boolean;
  spent: string;
  exhausted: boolean;
  reached: { threshold: number; at: string }[];
  cycle_started_at: string;
  next_reset_at: string;
}

/** An invoice as it is read with its numbers as text. */
export interface InvoiceItem {
  id: string;
  status: string;
  cycle_started_at: string;
  issued_at: string;
  due_at: string;
  blocks_at?: string;
  net_amount: string;
  tax_amount: string;
  total_amount: string;
  paid_amount: string;
  credited_amount: string;
  open_amount: string;
}

/** Of answers whose numbers are text. */
interface ExactPagination {
  page: string;
  limit: string;
  total: string;
  pages: string;
}

export interface InvoiceList {
  invoices: InvoiceItem[];
  pagination: ExactPagination;
}

export interface InvoiceLine {
  line: string;
  project_id: string;
  kind: string;
  plan?: string;
  unit: string;
  quantity: string;
  unit_amount: string;
  amount: string;
  charges: string;
  adjusts?: true;
}

export interface TaxAmount {
  name: string;
  rate: string;
  amount: string;
}

export interface CreditNote {
  id: string;
  reason: string;
  issued_at: string;
  net_amount: string;
  tax_amount: string;
  total_amount: string;
}

export interface InvoicePayment {
  kind: string;
  reference: string;
  amount: string;
  paid_at: string;
}

export interface Invoice extends InvoiceItem {
  issuer: string;
  organization: { id: string; name: string; country?: string };
  carried_in: string;
  subtotal: string;
  carried_out: string;
  taxes: TaxAmount[];
  credit_notes: CreditNote[];
  payments: InvoicePayment[];
  lines: InvoiceLine[];
  pagination: ExactPagination;
}

export interface RunMetrics {
  status: string;
  cpu?: { average_cores?: number; peak_cores?: number; latest_cores?: number };
  memory?: { average_bytes?: number; peak_bytes?: number; latest_bytes?: number };
  samples?: number;
}

export interface RunLog {
  run: { id: string; status: string; billed_minutes?: number };
  logs: string;
}

export interface Build {
  id: string;
  commit_sha: string | null;
  branch: string | null;
  tag?: string;
  status: string;
  started_at: string | null;
  finished_at: string | null;
  created_at: string;
  triggered_by: string;
  error_code?: string;
  error_message?: string;
}

/** A line of a build's log, as an event `log` has it. */
export interface BuildLine {
  sequence: number;
  timestamp: string;
  level: string;
  step: string;
  message: string;
}

/** A log drain. */
/** A webhook, or a recipient of e-mail. */
export interface Receiver {
  id: string;
  url?: string;
  description?: string;
  email?: string;
  event_types: string[];
  project_ids?: string[];
  enabled: boolean;
  disabled_reason?: string;
  /** Of a recipient alone. */
  confirmed?: boolean;
  failing_since?: string;
  dropped_events: number;
  created_at: string;
}

export interface Delivery {
  id: string;
  event_type: string;
  project_id?: string;
  status: string;
  attempts: number;
  created_at: string;
  next_attempt_at?: string;
  response_code?: number;
  error?: string;
}

export interface DeliveryList {
  deliveries: Delivery[];
  pagination: { page: number; limit: number; total: number; pages: number };
}

/** A rule of a project's alerts. */
export interface AlertRule {
  name: string;
  metric: string;
  /** Percent. */
  threshold?: number;
  for_seconds?: number;
}

/** A rule with its state. */
export interface Alert extends AlertRule {
  state: string;
  since?: string;
  value?: number;
}

export interface LogDrainItem {
  id: string;
  name: string;
  otlp_http?: { endpoint: string };
  syslog?: { host: string; port: number };
  status: string;
  message?: string;
  lag_seconds: number;
}

export interface LogDrainList {
  log_drains: LogDrainItem[];
}
