use std::collections::BTreeMap;

use super::*;

const PTX: &str = "\
.const .align 4 .b8 first[8] = {0, 0, 0, 0, 8, 0, 0, 0};
\tmov.b32 %r9, 4;
\tld.const.u32 %r1, [first+4];
\tand.b32 %r2, %r1, 7;
@%p1 bra $L__BB0_2;
\tshfl.sync.bfly.b32 %r3|%p2, %r2, %r9, 31, -1;
\tsetp.lt.s32 %p3, %r3, %r2;
\tfma.rn.f32 %f3, %f1, 0f3F800000, %f2;
\tadd.f32 %f4, %f1, %f2;
\tadd.f32 %f5, %f3, %f2;
\tshl.b32 %r4, %r2, 3;
\tshr.u32 %r5, %r4, 3;
{ .reg .pred p; bra one; }
";

/// The last two additions are of one line of the source.
fn sources() -> BTreeMap<u32, u32> {
    (2..=13).map(|line| (line, if line == 10 { 9 } else { line })).collect()
}

fn all() -> Vec<Mutant> {
    Instructions::of(PTX, &sources()).mutants().collect()
}

fn has(lines: &[(u32, &str)]) -> bool {
    let wanted: Vec<(u32, String)> =
        lines.iter().map(|&(line, text)| (line, text.to_owned())).collect();
    all().iter().any(|mutant| mutant.lines == wanted)
}

#[test]
fn constants_are_changed_one_by_one() {
    assert!(has(&[(4, " and.b32 %r2, %r1, 15;")]));
    assert!(has(&[(8, " fma.rn.f32 %f3, %f1, 0f40000000, %f2;")]));
    // Registers that hold nothing else are constants, too; lanes that take part are left alone.
    assert!(has(&[(6, " shfl.sync.bfly.b32 %r3|%p2, %r2, 2, 31, -1;")]));
    assert!(!all().iter().any(|mutant| mutant.change.contains("instead of 31")));
}

#[test]
fn elements_of_tables_are_changed() {
    let of = |mutant: &Mutant| mutant.element == Some(("first".to_owned(), 1));
    let text = ".const .align 4 .b8 first[8] = {0, 0, 0, 0, 7, 0, 0, 0};";
    let is_it = |mutant: &Mutant| of(mutant) && mutant.text(PTX).starts_with(text);
    let found: Vec<String> = all().into_iter().filter(is_it).map(|mutant| mutant.change).collect();
    assert_eq!(found, ["7 instead of 8"]);
}

#[test]
fn comparisons_and_operands_are_changed() {
    assert!(has(&[(7, " setp.le.s32 %p3, %r3, %r2;")]));
    assert!(has(&[(9, " sub.f32 %f4, %f1, %f2;")]));
    assert!(has(&[(10, " add.f32 %f5, %f4, %f2;")]));
}

#[test]
fn bits_are_taken_from_further_up_and_parities_turned_round() {
    assert!(has(&[(4, " bfe.u32 %r2, %r1, 1, 3;")]));
    let parity = "and.b32 %r2, %r1, 1;\n";
    let code = Instructions::of(parity, &BTreeMap::from([(1, 1)]));
    let turned = " and.b32 %r2, %r1, 1;  xor.b32 %r2, %r2, 1;\n";
    assert!(code.mutants().any(|mutant| mutant.text(parity) == turned));
}

fn texts_of(line: &str) -> Vec<String> {
    let code = Instructions::of(line, &BTreeMap::from([(1, 1)]));
    code.mutants().map(|mutant| mutant.text(line).trim().to_owned()).collect()
}

#[test]
fn quotients_bounds_and_signs_are_others() {
    let up = "{ .reg .b32 %up; add.s32 %up, %r2, %r3; sub.s32 %up, %up, 1;  \
              div.s32 %r1, %up, %r3; }";
    assert!(texts_of("div.s32 %r1, %r2, %r3;").iter().any(|text| text == up));
    let beside = "{ .reg .b32 %beside; sub.s32 %beside, %r3, 1;  setp.eq.s32 %p1, %r2, %beside; }";
    assert!(texts_of("setp.eq.s32 %p1, %r2, %r3;").iter().any(|text| text == beside));
    let other = "cvt.u64.u32 %rd1, %r2;";
    assert!(texts_of("cvt.s64.s32 %rd1, %r2;").iter().any(|text| text == other));
    let alone = "mov.pred %p3, %p2;";
    assert!(texts_of("or.pred %p3, %p1, %p2;").iter().any(|text| text == alone));
    assert!(texts_of("@%p1 bra $L;").iter().any(String::is_empty));
}

#[test]
fn barriers_come_before_accesses() {
    let code = Instructions::of(PTX, &sources());
    let all: Vec<Mutant> = code.with_barriers().collect();
    let texts = [
        "bar.sync 0;  ld.const.u32 %r1, [first+4];",
        "bar.warp.sync -1;  ld.const.u32 %r1, [first+4];",
    ];
    let lines: Vec<&str> =
        all.iter().flat_map(|of| &of.lines).map(|(_, text)| text.as_str()).collect();
    assert_eq!(lines, texts);
}

#[test]
fn what_is_of_one_line_changes_together() {
    assert!(has(&[(9, " sub.f32 %f4, %f1, %f2;"), (10, " sub.f32 %f5, %f3, %f2;")]));
    assert!(
        has(&[(11, " shl.b32 %r4, %r2, 4;"), (12, " shr.u32 %r5, %r4, 4;"),])
            || has(&[
                (4, " and.b32 %r2, %r1, 15;"),
                (11, " shl.b32 %r4, %r2, 4;"),
                (12, " shr.u32 %r5, %r4, 4;"),
            ])
    );
}

#[test]
fn the_text_stays_but_for_what_is_changed() {
    for mutant in all() {
        let text = mutant.text(PTX);
        let changed: Vec<u32> = mutant.changed().collect();
        for (number, (new, old)) in (1..).zip(text.lines().zip(PTX.lines())) {
            assert_eq!(new != old, changed.contains(&number), "{number}: {new}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", like in "[a-z0-9%@\\[\\]{}|;,.=+\\- \n]{0,80}") {
        for ptx in [text.as_str(), &like, &format!(".const .b8 a[2] = {{{like}}};\nadd {like};")] {
            let sources = (1..9).map(|line| (line, line)).collect();
            let code = Instructions::of(ptx, &sources);
            for mutant in code.mutants().chain(code.with_barriers()) {
                mutant.text(ptx);
            }
        }
    }
}
