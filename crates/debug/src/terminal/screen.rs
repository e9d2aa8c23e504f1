//! Where things stand on the screen.

use super::picture::{heat_map, hex, numbers};
use super::view::View;
use super::{Picture, Screen};
use chipless_report::clean;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

const KEYS: &str =
    "F5 continue F6 back F7 step back F8 step F9 break F10 next Tab operand F2 view ^D quit";

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const CURRENT: Style = Style::new().fg(Color::Black).bg(Color::Yellow);
const DIM: Style = Style::new().fg(Color::DarkGray);

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen, view: &View) {
    let area = frame.area();
    let lanes = (area.height / 6)
        .clamp(2, 12)
        .min(view.lanes.len().max(1) as u16);
    let syncs = (area.height / 12)
        .clamp(1, 5)
        .min(view.syncs.len().max(1) as u16);
    let output = (area.height / 5).max(3);
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lanes + 1),
        Constraint::Fill(1),
        Constraint::Length(syncs + 1),
        Constraint::Length(output + 1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [title, timeline, middle, below, said, line, keys] = rows.areas(area);
    let columns = Layout::horizontal([Constraint::Percentage(40), Constraint::Fill(1)]);
    let [left, right] = columns.areas(middle);
    let head = Line::from(vec![
        Span::styled("chipless debug ", STRONG),
        Span::styled(format!("{}  ", view.place), STRONG),
        Span::raw(clean(&screen.file)),
    ]);
    frame.render_widget(Paragraph::new(head), title);
    draw_timeline(frame, view, timeline);
    draw_effects(frame, view, left);
    draw_operands(frame, screen, view, right);
    draw_text(frame, "syncs of the task", &view.syncs, below);
    draw_output(frame, screen, said);
    draw_line(frame, screen, line);
    frame.render_widget(Paragraph::new(Span::styled(KEYS, DIM)), keys);
}

fn titled(title: &str) -> Block<'_> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(DIM)
        .title(Span::styled(title, STRONG))
}

fn draw_text(frame: &mut Frame<'_>, title: &str, lines: &[String], area: Rect) {
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(clean(line))).collect();
    frame.render_widget(Paragraph::new(text).block(titled(title)), area);
}

/// A row for each server, the present in the middle.
fn draw_timeline(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let block = titled("timeline");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = inner.height as usize;
    let current = view
        .lanes
        .iter()
        .position(|lane| lane.is_current)
        .unwrap_or(0);
    let first = current
        .saturating_sub(rows / 2)
        .min(view.lanes.len().saturating_sub(rows));
    let shown = view.lanes.iter().skip(first).take(rows);
    let widest = view
        .lanes
        .iter()
        .map(|lane| lane.name.chars().count())
        .max();
    let names = widest.unwrap_or(0).min(16);
    let width = (inner.width as usize).saturating_sub(names + 1).max(1);
    // The window is as wide as the tasks around the present.
    let reach = view
        .lanes
        .iter()
        .flat_map(|lane| &lane.spans)
        .filter(|span| span.2)
        .map(|span| span.1.0.saturating_sub(span.0.0))
        .next()
        .unwrap_or(1)
        .saturating_mul(8)
        .max(1000);
    let start = view.now.0.saturating_sub(reach / 2);
    let cell = |at: u64| {
        let from_start = u128::from(at.saturating_sub(start)) * width as u128 / u128::from(reach);
        (from_start as usize).min(width)
    };
    let lines: Vec<Line<'_>> = shown
        .map(|lane| {
            let mut cells = vec![(' ', Style::new()); width];
            for (from, to, is_current) in &lane.spans {
                if to.0 < start || from.0 > start.saturating_add(reach) {
                    continue;
                }
                let (low, high) = (cell(from.0), cell(to.0).max(cell(from.0) + 1).min(width));
                let colour = if *is_current {
                    Color::Yellow
                } else {
                    Color::Blue
                };
                for at in cells.iter_mut().take(high).skip(low) {
                    *at = ('▄', Style::new().fg(colour));
                }
            }
            if let Some(now) = cells.get_mut(cell(view.now.0).min(width - 1)) {
                *now = ('│', STRONG);
            }
            let name: String = lane.name.chars().take(names).collect();
            let mut spans = vec![Span::raw(format!("{name:names$} "))];
            spans.extend(
                cells
                    .into_iter()
                    .map(|(c, style)| Span::styled(c.to_string(), style)),
            );
            Line::from(spans)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn draw_effects(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let rows = area.height.saturating_sub(1) as usize;
    let current = view
        .effects
        .iter()
        .position(|(n, ..)| *n == view.at)
        .unwrap_or(0);
    let first = current
        .saturating_sub(rows / 3)
        .min(view.effects.len().saturating_sub(rows));
    let lines = view
        .effects
        .iter()
        .skip(first)
        .take(rows)
        .map(|(number, text, stops)| {
            let mark = if *stops { '●' } else { ' ' };
            let arrow = if *number == view.at { '▶' } else { ' ' };
            let line = format!("{arrow}{mark}{number:>5} {}", clean(text));
            let style = if *number == view.at {
                CURRENT
            } else {
                Style::new()
            };
            Line::styled(line, style)
        });
    let text: Vec<Line<'_>> = lines.collect();
    frame.render_widget(Paragraph::new(text).block(titled("effects")), area);
}

fn draw_operands(frame: &mut Frame<'_>, screen: &Screen, view: &View, area: Rect) {
    let block = Block::new()
        .borders(Borders::TOP | Borders::LEFT)
        .border_style(DIM)
        .title(Span::styled("operands", STRONG));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = inner.height as usize;
    let listed = view.operands.len().min((rows / 2).max(1));
    let first = (view.operand + 1).saturating_sub(listed);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (index, line) in view.operands.iter().enumerate().skip(first).take(listed) {
        let style = if index == view.operand {
            STRONG.fg(Color::Yellow)
        } else {
            Style::new()
        };
        lines.push(Line::styled(clean(line).into_owned(), style));
    }
    let room = rows.saturating_sub(lines.len() + 1);
    if let Some(tensor) = view.tensor.as_ref().filter(|_| room > 0) {
        let width = inner.width as usize;
        let (name, picture) = match screen.picture {
            Picture::HeatMap => ("heat map", heat_map(tensor, width, room)),
            Picture::Numbers => ("numbers", numbers(tensor, width, room)),
            Picture::Hex => ("bytes", hex(tensor, width, room)),
        };
        lines.push(Line::styled(
            format!("{name} of operand {}", view.operand),
            DIM,
        ));
        lines.extend(picture.into_iter().map(Line::raw));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn draw_output(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let rows = area.height.saturating_sub(1) as usize;
    let end = screen.output.len().saturating_sub(screen.scrolled);
    draw_text(
        frame,
        "output",
        &screen.output[end.saturating_sub(rows)..end],
        area,
    );
}

fn draw_line(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    const PROMPT: &str = "(debug) ";
    let room = (area.width as usize).saturating_sub(PROMPT.len() + 1);
    let first = screen.cursor.saturating_sub(room);
    let shown: String = screen.line.iter().skip(first).take(room).collect();
    let line = Line::from(vec![Span::styled(PROMPT, STRONG), Span::raw(shown)]);
    frame.render_widget(Paragraph::new(line), area);
    let column = area.x + (PROMPT.len() + screen.cursor - first) as u16;
    frame.set_cursor_position((column, area.y));
}
